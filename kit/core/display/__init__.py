"""How values are worded and shown: a turn in a few words, counts, commands, tables for notebooks."""
