"""What will it take to train a language model? The formulas, one module a chapter.

`import llmtrain_helpers` brings the formulas and nothing foreign. What reads `data/`
(`published`), draws (`figures`), shows a panel (`panels`) or checks an answer
(`exercises`) is imported by its own name.
"""

from llmtrain_helpers import architecture, checks, parameters, units
from llmtrain_helpers.architecture import Accelerator, Transformer
from llmtrain_helpers.parameters import ParameterCount, count_parameters, gpt_parameters

__all__ = [
    "Accelerator",
    "ParameterCount",
    "Transformer",
    "architecture",
    "checks",
    "count_parameters",
    "gpt_parameters",
    "parameters",
    "units",
]
