"""The old place of the exercises: this says what to import now."""

raise ImportError(
    "the exercises have moved: write `from llmtrain_course import check, own_run, predict`"
)
