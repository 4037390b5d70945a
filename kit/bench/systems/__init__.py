"""Whole systems under the bench: whatever answers a message, without a card or a deck."""
