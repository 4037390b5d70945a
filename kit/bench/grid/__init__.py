"""Models, prompts, patterns, cases and faults in every combination, played once each."""
