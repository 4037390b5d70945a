"""The answer of a turn: what it owes, whether it says so, and the fixed words where it does not."""
