"""Chapter 04."""

from llmtrain_helpers import batch_tokens, data_parallel_size, global_batch_size
from tests.faces.exercises.answers.table import Answers

MINE = {"model": "Llama-3.1-8B", "gpus": 8, "tensor": 1, "pipeline": 1, "micro": 1}
MINE |= {"accumulation": 64, "sequence": 8192}


ANSWERS = {
    "batch-sequences": Answers(
        right=[384 // 48 * 128 * 2, 2048.0],
        common_mistakes=[
            (98_304, "every GPU as a replica"),
            (12_288, "every node as a replica"),
            (16, "one pass per replica"),
            (256, "one replica's part"),
            (8, "the number of replicas"),
            (1024, "each pass processes a whole micro-batch"),
        ],
    ),
    "batch-a": Answers(
        right=[
            3_145_728,
            "3,145,728",
            "3.145728M",
            3145728.0,
            batch_tokens(global_batch_size(4, 32, data_parallel_size(96, 2, 4)), 2048),
        ],
        replies=[(3.146e6, "the exact value")],
        common_mistakes=[
            (3_145_728 * 8, "every GPU as a replica"),
            (3_145_728 * 4, "pipeline's stages"),
            (3_145_728 * 2, "tensor-parallel group"),
            (3_145_728 // 12, "one replica's part"),
            (3_145_728 // 4, "a pass processes a whole micro-batch"),
            (3_145_728 // 32, "one pass per replica"),
            (1536, "counted sequences"),
            (3_145_728 * 12, "already counted the replicas"),
        ],
    ),
    "batch-b": Answers(
        right=["2M", "2m"],
        replies=[
            ("2M", "2.8× the tokens of a tiny batch, and only 1.6× the updates of a huge one"),
            (128, "128 sequences"),
        ],
        common_mistakes=[
            ("0.5M", "needs 3.2× the updates"),
            ("1M", "needs 2.1× the updates"),
            ("4M", "needs 4.6× the tokens, but you can only pay for 4×"),
            ("8M", "needs 8.1× the tokens"),
        ],
    ),
    "batch-c": Answers(
        right=[
            3.96,
            "3.96",
            "3.96 s",
            "3960 ms",
            11 * 0.36,
            (32 / 4 + 3) * (0.12 + 4 * 0.06),
            3.9600001,
        ],
        common_mistakes=[
            (4.2, "waits for 3 of its 7"),
            (4.56, "wait less"),
            (6.3, "4× as often"),
            (5.4, "don't fit"),
            (2.88, "it also waits"),
            (2.4, "the largest micro-batch and left out the waiting"),
            (3.84, "of 2 without the waiting"),
            (0.36, "one pass"),
            (4, "a micro-batch, or the seconds"),
            ("8", "a micro-batch, but you were asked for the seconds"),
            (4.0, "three digits"),
            ("4.0 s", "three digits"),
            ("4 GB", "these are GB; we asked for seconds"),
            (11, "the number of turns, but"),
            (5.0, "Too high"),
        ],
    ),
    "batch-d": Answers(
        right=[
            MINE | change
            for change in (
                {},
                {"accumulation": 32},
                {"micro": 2, "accumulation": "32"},
                {"gpus": 1024, "tensor": 8, "pipeline": 2, "accumulation": 8, "micro": 1},
                {"sequence": "8k tokens", "accumulation": "64 passes", "gpus": "8 GPUs"},
                {"model": "Llama-3.1-70B", "gpus": 64, "tensor": 8},
            )
        ],
        replies=[
            (MINE | {"model": "gpt2", "sequence": 1024}, "tokens per step"),
            (MINE | {"model": "Qwen2.5-0.5B", "accumulation": 16}, "tokens per step"),
            (
                {"model": "Llama-3.1-405B", "gpus": 16384, "sequence": 8192}
                | {"tensor": 8, "pipeline": 16, "micro": 1, "accumulation": 16},
                "can't split 126 layers evenly over 16 stages",
            ),
            (
                MINE | {"model": "Llama-3.1-70B", "gpus": 64, "tensor": 8},
                "3.00 million (Chinchilla 70B) to 18.9 million (DeepSeek LLM 67B), with "
                "4.00 million in the middle",
            ),
        ],
        common_mistakes=[
            *(
                (MINE | change, reply)
                for change, reply in [
                    (
                        {"accumulation": 1},
                        "65.5 thousand tokens per step. We don't know of any model this size "
                        "with a batch that small",
                    ),
                    ({"accumulation": 4096}, "with a batch that large"),
                    ({"gpus": 12, "tensor": 8}, "can't split 12 GPUs into replicas of 8"),
                    ({"gpus": 32, "tensor": 16}, "doesn't stay inside a node"),
                    ({"gpus": 24, "tensor": 3}, "TP 3 doesn't stay inside a node"),
                    ({"gpus": 64, "pipeline": 64}, "can't split 32 layers into 64 stages"),
                    (
                        {"micro": 64, "accumulation": 1},
                        "each GPU would store 3.10 TB of activations",
                    ),
                    ({"gpus": 10, "pipeline": 5}, "can't split 32 layers evenly over 5 stages"),
                    ({"micro": 0}, "micro=0 is not positive"),
                    ({"micro": "two"}, "isn't a number"),
                    ({"gpus": "8 days"}, "gpus='8 days': these are days; we asked for GPUs"),
                    ({"model": "Llama-9"}, "Llama-9"),
                ]
            ),
            (MINE | {"gpus": 1}, "With 1 replica, you train on"),
            (MINE | {"model": "gpt2", "accumulation": 8, "sequence": 1024}, "tokens per step"),
            ({"model": "gpt2"}, "leaves out gpus, tensor"),
            (64, "isn't a dict"),
        ],
        unanswered=[MINE | {"accumulation": None}],
    ),
}
