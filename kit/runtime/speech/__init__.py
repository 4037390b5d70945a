"""What reaches the user while a turn runs: text and status lines."""
