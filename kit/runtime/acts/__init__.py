"""Calls that ask their user first or must not be made twice, and the turn that pauses for them."""
