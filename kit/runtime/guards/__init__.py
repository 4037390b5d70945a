"""Checks between the decision of an orchestrator's model and its execution."""
