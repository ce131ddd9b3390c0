"""`python -m llmtrain_helpers.measure` was moved: this says where."""

import sys

sys.exit("Write: python -m llmtrain_helpers measure --record FILE.csv")
