"""Documents: what plans, tasks and assistants leave, as values, and the check before one is written."""
