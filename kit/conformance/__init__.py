"""What becomes of a turn when a part of it fails: one contract as scenarios, for systems of any framework.

`scenario`, `child`, `composer`, `task`, `judge` and `stage` use the standard library alone: they run in the
environment of the framework, where the kit's own packages are not.
"""
