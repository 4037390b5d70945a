"""One question each: what the notebooks measure."""
