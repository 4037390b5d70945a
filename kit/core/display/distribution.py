"""What the package index knows the kit by: the name of its distribution, which is also its command, and its version."""

NAME = "subagent-kit"
VERSION = "0.1.0"
"""pyproject.toml reads it from here."""
