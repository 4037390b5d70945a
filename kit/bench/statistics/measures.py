"""What is counted of a turn beside its scores."""

COUNTS = ("model_calls", "input_tokens", "output_tokens", "cost")
PEER_MEASURES = (
    "hops",
    "hop_bytes",
    "hop_ms",
    "hop_writing_ms",
    *(f"peer_{name}" for name in ("seconds", *COUNTS)),
)
"""What is counted of calls to agents that are elsewhere, over their hops: what crossing took, and
what was spent over there."""
MEASURES = ("seconds", "ttft", "routing_seconds", *COUNTS, *PEER_MEASURES)
"""What is counted beside the scores; seconds by the turn's own clock."""
