"""The page Plans: what was planned, what each step got and gave, what was planned anew, and how plans do."""
