"""What stored turns add up to: measures of one turn, metrics over many, spending, the alert."""
