"""JSON: what a value of it is; JSON Schema: its notation, values held against it, one schema held against another."""
