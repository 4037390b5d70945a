"""Manager, planner, executor: a task becomes a verified plan, each of its steps runs in an executor of its own."""
