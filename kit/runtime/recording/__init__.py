"""Recordings of model and tool calls: written, replayed, and compared with what is asked now."""
