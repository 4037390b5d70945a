"""The link between an agent and a peer: what its messages take where time is virtual."""

from pydantic import Field

from kit.core.value import Value


class Link(Value):
    """What one message takes from one side to the other: so much, and more the larger it is.

    The defaults are near what a busy loopback socket took, both sides' JSON included (data/grids/hop.yaml measures it).
    """

    ms: float = Field(default=5, ge=0)
    """Milliseconds a message."""
    ms_per_kb: float = Field(default=0.2, ge=0)
    """More for each thousand bytes."""

    def seconds(self, size: int) -> float:
        """How long a message of so many bytes is under way."""
        return (self.ms + self.ms_per_kb * size / 1000) / 1000
