"""The HTTP API of a kit (docs/api.md)."""
