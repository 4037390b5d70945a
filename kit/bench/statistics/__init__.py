"""Estimates with intervals, differences, and how many items would settle one."""
