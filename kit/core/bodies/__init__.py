"""The bodies of events: a module for each subject, and its kinds as one union at the end of it."""
