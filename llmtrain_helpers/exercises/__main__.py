"""`python -m llmtrain_helpers.exercises` was moved: this says where."""

import sys

sys.exit("Write: python -m llmtrain_helpers class FOLDER")
