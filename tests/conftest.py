"""Settings of the tests; the notebooks and doctests need none of them, nor hypothesis."""

from hypothesis import settings

settings.register_profile("course", deadline=None)  # a busy machine isn't a fault of the code
settings.load_profile("course")
