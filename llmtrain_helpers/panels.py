"""The old place of the panels: this says what to import now."""

raise ImportError(
    "the panels have moved: write `from llmtrain_course import handle, plan_panel`, with the "
    "panel that you want"
)
