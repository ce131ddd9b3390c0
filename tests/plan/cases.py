"""Models, chips and a plan that tests change one thing of."""

from dataclasses import replace

from llmtrain_helpers import plan_run, published

A100 = published.accelerator("A100")
H100 = published.accelerator("H100")
LLAMA = published.architecture("Llama-3.1-8B", sequence_length=8192)
UNLINKED = replace(A100, link_bandwidth=None)  # no split counts
LARGE = published.architecture("Llama-3.1-70B", sequence_length=8192)
RUN = {
    "model": LLAMA,
    "accelerator": A100,
    "num_gpus": 64,
    "tokens": 10**12,
    "global_batch_size": 512,
    "recompute": "none",
    "micro_batch_size": 1,
    "tensor_parallel": 1,
    "pipeline_parallel": 1,
    "context_parallel": 1,
}


def plan_of(**changes: object):
    return plan_run(**{**RUN, **changes})
