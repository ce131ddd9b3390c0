"""The formulas held against PyTorch. Left out, with one reason, where there is none."""

import pytest

from llmtrain_helpers.measure import torch_missing

pytest.importorskip("torch", reason=torch_missing() or "")
