"""Settings of the tests; the notebooks and doctests need none of them, nor hypothesis."""

from hypothesis import settings

from llmtrain_helpers import checks

settings.register_profile("course", deadline=None)  # a busy machine isn't a fault of the code
settings.load_profile("course")

checks._MODELS = 4096  # as many models as a run of all tests meets: each is counted once
