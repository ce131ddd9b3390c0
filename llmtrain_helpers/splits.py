"""The old place of `llmtrain_helpers.evidence.splits`, and of the command of that name."""

import sys
from importlib import import_module

if __name__ == "__main__":
    sys.exit("Write: python -m llmtrain_helpers splits")

sys.modules[__name__] = import_module("llmtrain_helpers.evidence.splits")
