"""Planner and executor of a plan as the offline stand-in plays them: labelled templates over words and schemas."""
