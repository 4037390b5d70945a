"""JSON Schema: the notation that it is written in, values held against it, one schema held against another."""
