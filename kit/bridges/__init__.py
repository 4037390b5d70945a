"""Systems that are not ours - functions, graphs and agents of other frameworks, services - asked in one way."""
