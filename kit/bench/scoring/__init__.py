"""What is seen of a turn, and what it scores."""
