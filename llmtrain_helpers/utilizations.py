"""`python -m llmtrain_helpers.utilizations` was moved: this says where."""

import sys

if __name__ == "__main__":
    sys.exit("Write: python -m llmtrain_helpers utilizations")
