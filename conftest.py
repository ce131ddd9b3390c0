"""What pytest leaves out: the parts that import PyTorch, where there is none."""

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("torch") else ["llmtrain_helpers/measure/*"]
