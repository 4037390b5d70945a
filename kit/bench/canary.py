"""May a card's new version take the place of the one it shares its sessions with? What was judged of both says."""

from collections.abc import Iterable, Sequence
from typing import Literal

from kit.bench.statistics.always_valid import any_look_reach
from kit.bench.statistics.difference import Difference, unpaired_difference
from kit.bench.statistics.means import FEWEST, SCORES, mean_of
from kit.bench.statistics.power import items_for_reach
from kit.bench.statistics.verdict import amount, possible
from kit.compose.canary import canary_of, newest_of, version_of, with_next
from kit.compose.deck import Deck
from kit.core.display.count import many
from kit.core.value import Value
from kit.metrics.estimate import LEVEL, Estimate
from kit.metrics.judgement import Judgement, judge_name

OWN = "its own evaluation"
WHOLE = "end to end"
Decision = Literal["promote", "roll back", "go on"]
Scores = Sequence[tuple[str, float]]
"""The session of each judgement, and its score."""


class Gate(Value):
    """One evaluation of both versions. Its interval holds at every look, so that one may look at any time."""

    name: str
    margin: float
    """By how much the new version may score less."""
    before: Estimate | None = None
    after: Estimate | None = None
    sessions: tuple[int, int] = (0, 0)
    """Sessions that were judged with the version in place, and with the new one."""
    difference: Difference | None = None
    """None while one of the two has no judgement."""
    sessions_needed: int | None = None
    """Sessions of each version until the margin shows 8 times in 10, where both are alike; None where nothing tells."""

    @property
    def holds(self) -> bool:
        """Whether the new version surely scores less by the margin at most."""
        return self.difference is not None and self.difference.low > -self.margin

    @property
    def is_worse(self) -> bool:
        """Whether it surely scores less, and may do so by the margin or more."""
        return self.difference is not None and self.difference.high < 0 and not self.holds

    def __str__(self) -> str:
        old, new = (many(count, "session") for count in self.sessions)
        if self.difference is None or self.before is None or self.after is None:
            return f"{self.name}: {new} judged, {old} with the version in place: nothing to compare yet"
        figures = f"{self.after.value:.3f} in {new}, {self.before.value:.3f} in {old} with the version in place"
        leaves = possible(self.difference, self.name)
        return f"{self.name}: {figures}; {leaves}: {self.verdict}"

    @property
    def verdict(self) -> str:
        """What the interval says, in words."""
        if self.holds:
            return f"not worse by {amount(self.margin, self.name)} or more"
        if self.is_worse:
            return "worse"
        if self.sessions_needed is not None and self.sessions_needed > min(self.sessions):
            return f"cannot tell yet, about {self.sessions_needed:,} sessions of each are needed"
        return "cannot tell yet"


def gate_of(name: str, before: Scores, after: Scores, margin: float) -> Gate:
    """Sets the scores of both versions against each other, those of one session as one cluster."""
    old = len({session for session, _ in before})
    new = len({session for session, _ in after})
    if not old or not new:
        return Gate(name=name, margin=margin, sessions=(old, new))
    first = _mean(before)
    second = _mean(after)
    smaller = min(old, new)
    single_look = unpaired_difference(first, second, smaller, "session")
    reach = any_look_reach(smaller, LEVEL)
    sessions_needed = None
    # Fewer sessions say nothing of how far scores scatter.
    if smaller >= FEWEST and single_look.deviation > 0:
        sessions_needed = items_for_reach(margin, single_look.deviation, reach)
    return Gate(
        name=name,
        margin=margin,
        before=first,
        after=second,
        sessions=(old, new),
        difference=single_look.reaching(reach).of_scores,
        sessions_needed=sessions_needed,
    )


def _mean(scores: Scores) -> Estimate:
    sessions = [session for session, _ in scores]
    return mean_of([score for _, score in scores], sessions, within=SCORES)


def gates_of(deck: Deck, card_id: str, judgements: Iterable[Judgement]) -> tuple[Gate, ...]:
    """The gates of a card's new version: its own evaluation, and that of whole turns; of the orchestrator's the latter.

    Judgements of other versions, and by other judges, are left out: with a change of either version one begins anew.
    """
    # Both versions are judged as the new one asks for it.
    newer = newest_of(deck, card_id)
    root = newest_of(deck, deck.settings.orchestrator)
    sides = {
        version_of(card_id, deck): 0,
        version_of(card_id, with_next(deck, [card_id])): 1,
    }
    own: tuple[list[tuple[str, float]], ...] = ([], [])
    whole: tuple[list[tuple[str, float]], ...] = ([], [])
    for judgement in judgements:
        side = sides.get(judgement.versions.get(card_id, ""))
        if side is None:
            continue
        score = (judgement.session, judgement.score)
        if judgement.agent == card_id and judgement.judge == judge_name(newer):
            own[side].append(score)
        elif not judgement.agent and judgement.judge == judge_name(root):
            whole[side].append(score)
    margin = canary_of(deck, card_id).margin
    end_to_end = gate_of(WHOLE, *whole, margin)
    if card_id == root.id:
        return (end_to_end,)
    return gate_of(OWN, *own, margin), end_to_end


def decide(gates: Sequence[Gate]) -> Decision:
    """Returns what the evidence alone says.

    Both evaluations have to hold, and one that is surely worse is enough to go back. `promote` asks for more, such as
    tools that are old enough; and nothing goes live or back by itself.
    """
    if all(gate.holds for gate in gates):
        return "promote"
    if any(gate.is_worse for gate in gates):
        return "roll back"
    return "go on"
