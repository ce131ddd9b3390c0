"""Chapter 09."""

from llmtrain_helpers import plan_run, published
from tests.faces.exercises.answers.table import Answers

MEASURED = plan_run(
    published.architecture("Mistral-7B-v0.1", 4096),
    published.accelerator("H100"),
    128,
    4e12,
    1024,
    recompute="none",
).calibrated(3.4)

MINE = {"model": "Llama-3.1-8B", "gpus": 8, "days": 30, "chip": "A100 80GB SXM"}
MINE |= {"tokens": 33e9, "sequence": 4096, "batch": 1024, "tensor": 1, "pipeline": 1}
MINE |= {"micro": 1, "zero": 3, "recompute": "none"}

STATES, KEPT, LOGITS = 16 * 8_030_261_248, 48_360_325_120, 8_405_385_216
GATHERED = 4_202_692_608
REST = KEPT + LOGITS + GATHERED


ANSWERS = {
    "plan-memory": Answers(
        right=[STATES / 16 + REST, STATES // 16 + REST],
        common_mistakes=[
            ((STATES + REST) / 16, "works on its own sequence"),
            (STATES + REST, "1/16 of the states"),
            (STATES / 64 + REST, "divided by 64 GPUs"),
            (STATES / 16, "only the states"),
            (STATES / 16 + KEPT + LOGITS, "left out what's gathered"),
            ((STATES + GATHERED) / 16 + KEPT + LOGITS, "they're gathered whole"),
            (STATES / 16 + KEPT + GATHERED, "left out the logits"),
            (63.0, "× too little"),
        ],
    ),
    "plan-a": Answers(
        right=[
            4e12 / (1024 * 4096) * 3.4 / 86400 * 1.64,
            953_674 * 3.4 / 86400 * 1.64,
            37.5 * 1.64,
            "61.5",
            MEASURED.days_of_steps.likely * 1.64,
            MEASURED.days.greatest,
        ],
        common_mistakes=[
            (37.5, "Add the overhead"),
            (40.5, "the smallest overhead of the seven runs"),
            (24.02, "only the overhead"),
            (104.25, "64% on top of them"),
            (61.547 * 86400, "Those are seconds"),
            (61.547 * 24, "Those are hours"),
            (61.547 / 128, "measured on all 128 GPUs"),
            (61.547 * 1024, "there are 1,024"),
            (61.547 * 4096, "each is 4,096 tokens long"),
            (615.47, "10× too high"),
            (50, "Too low"),
        ],
    ),
    "plan-b": Answers(
        right=[756, "756", 756.0, 9 * (8 - 1) * 96 // 8, (8 - 1) * (1 / 0.1 - 1) * 12],
        common_mistakes=[
            (63, "of one replica, but there are twelve replicas"),
            (840, "used 10% of the useful time"),
            (70, "for 10% of the useful time"),
            (6048, "every GPU as a replica"),
            (864, "p instead of p − 1"),
            (744, "One micro-batch fewer leaves slightly"),
            (108, "every stage waits"),
            (768, "Too high"),
        ],
    ),
    "plan-c": Answers(
        right=["CP 4", "cp4"],
        replies=[(10_709, "Right, 10,709 tokens"), ("10.7k", "Right, ")],
        common_mistakes=[
            ("recompute", "at +32% GPU-hours. You save the activations"),
            ("128 GPUs", "each GPU needs 232 GB, which doesn't fit"),
            ("4 stages", "up to four micro-batches"),
            ("4 stages", "at +51% GPU-hours"),
        ],
    ),
    "plan-d": Answers(
        right=[MINE],
        replies=[
            *(
                (MINE | change, "Set aside ")
                for change in [
                    {},
                    {"tokens": "33B", "sequence": "4,096", "batch": "1,024"},
                    {"sequence": 8192, "batch": 512},
                    {"sequence": 8192, "batch": 512, "tokens": 29e9, "recompute": "full"},
                    {"gpus": 64, "tokens": 260e9},
                    {"chip": "H100", "gpus": 64, "tensor": 8, "tokens": 3.2e11, "zero": 1},
                    {"chip": "H100", "gpus": 64, "pipeline": 4, "tokens": 6e11, "zero": 1},
                    {"model": "Llama-3.2-1B", "tokens": 200e9},
                ]
            ),
            (MINE, "But that's 4.1 tokens per parameter, and 20 is"),
        ],
        common_mistakes=[
            *(
                (MINE | change, reply)
                for change, reply in [
                    ({"tokens": 57e9}, "27 days expected, 40.4 to promise"),
                    ({"tokens": 94e9}, ", and your limit is 30"),
                    ({"sequence": 9216, "batch": 512}, "because 5.10 GB should stay free"),
                    (
                        {"sequence": 8192, "batch": 512, "tokens": 47e9, "recompute": "full"},
                        "33 days expected, 48.6 to promise",
                    ),
                    ({"zero": 0}, "doesn't fit"),
                    ({"zero": 7}, "zero=7 is unknown"),
                    ({"micro": 3}, "batch=1024 is not divisible by micro·replicas=24"),
                    ({"gpus": 12, "tensor": 8}, "gpus=12 is not divisible by tensor"),
                    ({"sequence": 9216, "batch": 512}, "Shorten the sequence, or recompute"),
                    ({"sequence": 8192, "batch": 512, "micro": 2}, "Lower micro or sequence"),
                    ({"zero": 0}, "Raise zero, gpus or tensor, or choose a smaller model"),
                    ({"recompute": "all"}, "Known: none, selective, full, alternate"),
                    ({"tokens": "lots"}, "isn't a number"),
                    ({"model": "Llama-9"}, "Llama-9"),
                    ({"chip": "A1000"}, "A1000"),
                    ({"pipeline": 5, "gpus": 40}, "not divisible"),
                ]
            ),
            ({"model": "gpt2"}, "leaves out chip"),
            (64, "isn't a dict"),
        ],
        unanswered=[MINE | {"micro": None}],
    ),
}
