"""What a person gets to read of the sub-agents' progress, as data in deck.yaml."""

from typing import Literal

from pydantic import Field

from kit.core.value import Value

Act = Literal["forward", "transform", "suppress", "batch"]
SEEN_WITHIN = 2000
"""Milliseconds from a slow agent's start within which something of it should be read."""


class StatusRule(Value):
    """What becomes of one status."""

    act: Act = "forward"
    into: str | None = None
    """For `transform`: the status whose words are read in its place."""


class StatusPolicy(Value):
    """How statuses become lines. As it stands every status is forwarded at once, in the order they come."""

    default: Literal["forward", "suppress", "batch"] = "forward"
    """For every status without a rule of its own."""
    rules: dict[str, StatusRule] = {}
    """Status -> rule; a rule is for the event, whoever sends it."""
    batch_by: Literal["turn", "agent"] = "turn"
    """Whether a batch gathers from everybody at work or from each agent apart."""
    window_ms: int = Field(default=400, gt=0)
    """How long a batch gathers, from its first status on."""
    order: Literal["arrival", "interleave"] = "arrival"
    """`interleave`: nobody is heard twice in a row while another agent is at work."""
    gap_ms: int = Field(default=0, ge=0)
    """At least this long between two lines; 0 for no limit."""
    collapse: bool = True
    """Lines that wait together become one sentence; otherwise each is said, one after another."""
    quiet_ms: int | None = Field(default=1500, gt=0)
    """After so long without any status of an agent, the runtime says for it that it is thinking; None: never."""

    def rule(self, status: str) -> StatusRule:
        return self.rules.get(status) or StatusRule(act=self.default)

    @property
    def plain(self) -> bool:
        """Nothing ever waits or changes: no state is needed to tell what is read."""
        return (
            not self.rules
            and self.default == "forward"
            and self.order == "arrival"
            and not self.gap_ms
        )

    @property
    def slowest_ms(self) -> int | None:
        """The longest the first line of a silent agent can take, as far as the policy decides it; None: for ever."""
        if self.quiet_ms is None:
            return None
        act = self.rule("thinking_it_through").act
        if act == "suppress":
            return None
        return self.quiet_ms + self.gap_ms + (self.window_ms if act == "batch" else 0)
