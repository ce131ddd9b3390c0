"""Chapter 13."""

from tests.faces.exercises.answers.table import Answers


def own(way: object, texts: object, gpus: int = 8, length: object = 4096) -> dict[str, object]:
    return {"gpus": gpus, "way": way, "length": length, "texts": texts}


ANSWERS = {
    "finetune-adapter": Answers(
        right=[16 * (4096 + 14336)],
        common_mistakes=[
            (4096 * 14336, "That's the matrix itself, which stays frozen."),
            (
                16 * 4096 * 14336,
                "You've multiplied rows and columns, as you would for the whole matrix. "
                "Together, the",
            ),
            (16 * 4096, "That's one of the two matrices, but both learn."),
            (16 * 14336, "That's one of the two matrices, but the other one learns, too."),
            (2 * 16 * (4096 + 14336), "each of the two thin matrices twice"),
            (
                4096 + 14336,
                "You've left out the rank, which is how many rows or columns a thin matrix has",
            ),
        ],
    ),
    "finetune-a": Answers(
        right=[24_000 * 650 * 3 * 4 * 8e9 / 120e12 / 3600, "3.47 hours"],
        common_mistakes=[
            (5.2, "You've used 6 FLOPs per weight, but frozen weights don't"),
            (1.733, "You've only counted the forward pass, but the gradient"),
            (1.156, "You've read the texts once, but there are three epochs."),
            (10.92, "You've padded the rows, but packed ones are full of text."),
            (208, "Those are minutes. Give hours."),
            (12_480, "Those are seconds. Give hours."),
        ],
    ),
    "finetune-b": Answers(
        right=["loss piece by piece"],
        common_mistakes=[("rank 8", "No. "), ("no dropout", "No. "), ("4 bits", "No. ")],
    ),
    "finetune-c": Answers(
        right=[39.5, "39.5 GB"],
        common_mistakes=[
            (36.40, "That's your colleague's own number, but embedding and"),
            (35.28, "You've left out embedding and head, which also need memory."),
            (38.43, "You've left out the scales. A weight needs 0.516 bytes."),
            (37.96, "are two separate tables"),
            (43.72, "in 32 bits"),
            (141, "all the weights in 16 bits"),
        ],
    ),
    "finetune-d": Answers(
        right=[
            own("lora", 240_000),
            own("qlora", "200k", length=2048),
            own("lora", 30_000, gpus=1),
        ],
        replies=[(own("lora", 240_000), "Right, ")],
        common_mistakes=[
            (own("lora", 400_000), "That's too many texts. They may need"),
            (own("qlora", 30_000, length=2048, gpus=1), "That's too many texts. They may need"),
            (
                own("lora", 50_000),
                "You can fit more texts. They may need 1.6 hours, but your limit is 8",
            ),
            (own("full", 20_000, gpus=1), "It doesn't fit: 137 GB at the peak, and the reserve"),
            (own("lora", 10_000, gpus=16), "You have 8 GPUs, not 16."),
            (
                own("lora", 10_000, length=512),
                "Rows of 512 tokens are too short. Use at least 2,048.",
            ),
            (own("lora", 100), "100 texts fill 58 rows of 4,096 tokens, but one step needs 128"),
        ],
        unanswered=[own(None, None)],
    ),
}
