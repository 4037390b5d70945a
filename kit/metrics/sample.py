"""What metrics are made from: the sums over stored turns, and what labels say about some of them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from kit.core.bodies.call import AgentStarted
from kit.core.context import OPERATOR
from kit.core.record import TurnRecord
from kit.core.value import Value
from kit.metrics.estimate import Estimate, share
from kit.metrics.latency import Path, Spread, TimedPart, latencies, spread
from kit.stores.tally import Tally

if TYPE_CHECKING:
    from kit.stores.turn_store import TurnStore

Number = float | None
"""A count, a sum, a mean or a percentile; None where there is nothing to make it from."""
Figures = Mapping[str, Number] | Mapping[str, Estimate]
"""What each figure is of (an agent, a pattern, a purpose ...; empty: the turns) -> the figure."""


class Label(Value):
    """What a person or a judge says about one stored turn; everything but the turn is optional."""

    turn_id: str
    agents: tuple[str, ...] | None = None
    """Whom it should have asked."""
    carried: tuple[str, ...] = ()
    """Entities that prior_context had to carry."""
    resolved: bool | None = None
    """Whether a reference to something of another vertical was understood; None where there was none."""
    scores: dict[str, dict[str, float]] = {}
    """Vertical -> quality (response quality, safety, format ...) -> 0 to 1."""


@dataclass(frozen=True)
class Sample:
    """The turns that metrics are measured on."""

    tally: Tally
    labelled_turns: Sequence[tuple[TurnRecord, Label]] = ()
    """Those of the turns that have a label."""
    recall: Estimate = field(default_factory=lambda: share(0, 0))
    """Entities that labels name, and which of them prior_context carried."""
    # Three percentiles are three metrics of the same times: those of 100,000 turns are sorted once.
    _turn_times: dict[tuple[TimedPart, Path], dict[str, Spread]] = field(
        default_factory=dict[tuple[TimedPart, Path], dict[str, Spread]]
    )

    def turn_times(self, part: TimedPart, path: Path) -> dict[str, Spread]:
        """Returns pattern -> how long a part of its turns took, of those that went this way."""
        if (part, path) not in self._turn_times:
            self._turn_times[part, path] = latencies(self.tally, part, path)
        return self._turn_times[part, path]

    @cached_property
    def agent_times(self) -> dict[str, Spread]:
        """Sub-agent -> how long its invocations took."""
        times: dict[str, Spread] = {}
        for key in sorted(self.tally.samples):
            if key[0] == "agent":
                percentiles = spread(self.tally.samples[key])
                assert percentiles is not None, "a sub-agent is listed for its invocations"
                times[key[1]] = percentiles
        return times


def read_sample(
    store: "TurnStore",
    since: float | None,
    tenant: str | None,
    labels: Iterable[Label],
    tally: Tally | None,
) -> Sample:
    """Reads the ended turns of a store, of one tenant or all, begun at `since` or later.

    Only turns that have a label are read one by one, and of those whose label names carried
    entities the events.
    """
    labelled_turns: list[tuple[TurnRecord, Label]] = []
    outcomes: list[bool] = []
    for label in labels:
        turn = store.turn(label.turn_id, OPERATOR)
        # A turn that still runs has no figures yet.
        if turn is None or turn.seconds is None or turn.started_at < (since or 0.0):
            continue
        # A label may name anybody's turn: of another tenant's nothing is read, nor counted.
        if tenant not in (None, turn.tenant_id):
            continue
        labelled_turns.append((turn, label))
        outcomes += _entities_carried(store, label)
    return Sample(
        tally or store.tally(tenant, since), labelled_turns, share(sum(outcomes), len(outcomes))
    )


def _entities_carried(store: "TurnStore", label: Label) -> list[bool]:
    """Returns of each entity of a label whether the turn's prior_context held it."""
    if not label.carried:
        return []
    contexts: list[str] = []
    for event in store.events(label.turn_id, OPERATOR):
        if isinstance(event.body, AgentStarted):
            contexts.append(event.body.prior_context or "")
    text = " ".join(contexts).casefold()
    return [entity.casefold() in text for entity in label.carried]
