"""Chapter 13."""

from tests.faces.exercises.answers.table import Answers


def own(way: object, texts: object, gpus: int = 8, length: object = 4096) -> dict[str, object]:
    return {"gpus": gpus, "way": way, "length": length, "texts": texts}


ANSWERS = {
    "finetune-adapter": Answers(
        right=[16 * (4096 + 14336)],
        common_mistakes=[
            (4096 * 14336, "this is the matrix itself"),
            (16 * 4096 * 14336, "m times n is as large"),
            (16 * 4096, "this is one of the two matrices"),
            (16 * 14336, "the other one learns too"),
            (2 * 16 * (4096 + 14336), "each of the two thin matrices twice"),
            (4096 + 14336, "the rank is missing"),
        ],
    ),
    "finetune-a": Answers(
        right=[24_000 * 650 * 3 * 4 * 8e9 / 120e12 / 3600, "3.47 hours"],
        common_mistakes=[
            (5.2, "this has 6 FLOPs a weight"),
            (1.733, "this is forward alone"),
            (1.156, "this reads the texts once"),
            (10.92, "these rows are padded"),
            (208, "these are minutes"),
            (12_480, "these are seconds"),
        ],
    ),
    "finetune-b": Answers(
        right=["loss piece by piece"],
        common_mistakes=[("rank 8", "no: "), ("no dropout", "no: "), ("4 bits", "no: ")],
    ),
    "finetune-c": Answers(
        right=[39.5, "39.5 GB"],
        common_mistakes=[
            (36.40, "the colleague's own number"),
            (35.28, "embedding and head are missing"),
            (38.43, "the scales are missing"),
            (37.96, "are two tables"),
            (43.72, "in 32 bits"),
            (141, "all weights in 16 bits"),
        ],
    ),
    "finetune-d": Answers(
        right=[
            own("lora", 240_000),
            own("qlora", "200k", length=2048),
            own("lora", 30_000, gpus=1),
        ],
        replies=[(own("lora", 240_000), "right: ")],
        common_mistakes=[
            (own("lora", 400_000), "too many texts: "),
            (own("qlora", 30_000, length=2048, gpus=1), "too many texts: "),
            (own("lora", 50_000), "you leave time: "),
            (own("full", 20_000, gpus=1), "it does not fit: "),
            (own("lora", 10_000, gpus=16), "you have 8 GPUs"),
            (own("lora", 10_000, length=512), "rows of 512 tokens are too short"),
            (own("lora", 100), "100 texts fill 58 rows of 4,096 tokens, and one step has 128"),
        ],
        unanswered=[own(None, None)],
    ),
}
