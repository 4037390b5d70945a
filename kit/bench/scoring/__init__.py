"""Observations of turns, scorers over them, judges and labels."""
