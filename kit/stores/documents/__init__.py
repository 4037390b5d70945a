"""Five stores of documents with strict schemas: memory, souls, sessions, plans, events (docs/stores.md)."""
