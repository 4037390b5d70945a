"""What the measures of a grid count, in words."""

WORDS = {
    "exact": "messages routed exactly right",
    "mixed_exact": "mixed messages routed whole",
    "single_exact": "single requests routed right",
    "strict": "each called with its own part",
    "seconds": "seconds of a turn",
    "ttft": "seconds to the first words",
    "routing_seconds": "seconds to decide whom to ask",
    "input_tokens": "tokens read in a turn",
    "output_tokens": "tokens written in a turn",
    "model_calls": "model calls of a turn",
    "cost": "dollars of a turn",
    "hops": "calls to peers",
    "hop_bytes": "bytes to and from peers",
    "hop_ms": "milliseconds that calls to peers took beside the peers' work",
    "peer_seconds": "seconds that peers worked",
    "peer_cost": "dollars that peers spent",
}
"""Scorer or measure -> what it counts."""


def words(measure: str) -> str:
    """Returns in words what a measure counts."""
    return WORDS.get(measure, measure.replace("_", " "))
