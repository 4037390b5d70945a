"""A draft card becomes active when it fits its deck, routes well enough on switches, and its answers pass."""

from collections.abc import Collection, Iterable
from itertools import product

from kit.bench.routing_report import RoutedTurn
from kit.bench.tool_cases import ToolCaseResult
from kit.compose.deck import Deck
from kit.core.card import AgentCard
from kit.core.errors import DeckError, UnknownId
from kit.core.value import Value
from kit.metrics.estimate import Estimate, share

THRESHOLD = 0.95
"""The source's first target, for each vertical, on intent switches."""


class Promotion(Value):
    """Whether a card version may go live, with the numbers and every reason why not."""

    card: AgentCard
    """Active when it may, else as it was."""
    switches: Estimate
    """Switches into or out of the vertical that were routed right. The rate decides, as the source says; `switches.low`
    shows what so few cases vouch for, and does not decide."""
    answers: Estimate | None
    """Answers of the card that its judge let pass; None where nobody judged."""
    threshold: float
    faults: tuple[str, ...] = ()

    @property
    def promoted(self) -> bool:
        """Nothing speaks against it."""
        return not self.faults


def promote(
    deck: Deck,
    card_id: str,
    results: Iterable[RoutedTurn],
    threshold: float | None = None,
    tool_results: Iterable[ToolCaseResult] = (),
    passed: Collection[bool] | None = None,
) -> Promotion:
    """Checks one card of a deck against the schema, the deck, its switches, its tool cases and its
    judge; nothing is written.

    `results`: routed turns, as measured with the card bound. Only switches that touch the card
    count: turns that are for it after another, or for another after it. Every ordered pair with the
    deck's other active sub-agents must be among them. `threshold`: the share of switches and of
    answers that must be right; None takes the one of the card's `eval`, else 95 %. `tool_results`:
    what became of the card's cases for failing tools; each must be there and right. `passed`:
    whether each judged answer passed; None where nobody judged. Raises UnknownId for a card the
    deck does not hold.
    """
    if card_id not in deck.cards:
        raise UnknownId("card", card_id, deck.cards)
    card = deck.cards[card_id]
    if threshold is None:
        threshold = card.eval.threshold if card.eval else THRESHOLD
    turns: list[RoutedTurn] = []
    for turn in results:
        if turn.switch and card_id in (*turn.expected, *turn.previous):
            turns.append(turn)
    right = sum(set(turn.expected) == set(turn.called) for turn in turns)
    switches = share(right, len(turns))
    answers = None if passed is None else share(sum(passed), len(passed))
    faults = [
        *_unfit(deck, card),
        *_uncovered(deck, card_id, turns),
        *_failed_tool_cases(card, tool_results),
    ]
    if not turns:
        faults.append(
            f"no case goes over to {card_id!r} from another agent, or from it: no switch was measured"
        )
    for outcome, words in ((switches, "switches are routed right"), (answers, "answers pass")):
        if outcome is not None and outcome.n and outcome.value < threshold:
            faults.append(
                f"{outcome.right} of {outcome.n} {words}, {outcome.value:.1%}; {threshold:.0%} are needed"
            )
    if not faults:
        card = card.model_copy(update={"status": "active"})
    return Promotion(
        card=card, switches=switches, answers=answers, threshold=threshold, faults=tuple(faults)
    )


def _unfit(deck: Deck, card: AgentCard) -> list[str]:
    """Returns what keeps the active card from standing in its deck."""
    active = card.model_copy(update={"status": "active"})
    try:
        # A draft was never checked as a part of its deck.
        AgentCard.model_validate(active.model_dump())
        Deck.of(
            list({**deck.cards, card.id: active}.values()),
            deck.blocks.values(),
            deck.settings,
            deck.models.values(),
            name=deck.name,
            flags=deck.flags,
            tools=deck.tools,
            tool_settings=deck.tool_settings,
            flag_settings=deck.flag_settings,
            tool_flags=deck.tool_flags,
            rubrics=deck.rubrics.values(),
            dangers=deck.dangers.values(),
        )
    except ValueError as error:
        return [f"the card does not fit its schema: {error}"]
    except DeckError as error:
        return list(error.faults)
    root = deck.cards[deck.settings.orchestrator]
    if card.id in root.sub_agents:
        return []
    return [f"{root.id!r} does not list {card.id!r} in sub_agents; add it there"]


def _uncovered(deck: Deck, card_id: str, turns: list[RoutedTurn]) -> list[str]:
    root = deck.cards[deck.settings.orchestrator]
    measured_pairs: set[tuple[str, str]] = set()
    for turn in turns:
        measured_pairs.update(product(turn.previous, turn.expected))
    missing: list[str] = []
    for agent in deck.active_sub_agents(root):
        for origin, target in ((card_id, agent.id), (agent.id, card_id)):
            if agent.id != card_id and (origin, target) not in measured_pairs:
                missing.append(f"{origin} to {target}")
    if missing:
        return [f"no switch was measured from {', '.join(missing)}"]
    return []


def _failed_tool_cases(card: AgentCard, results: Iterable[ToolCaseResult]) -> list[str]:
    if card.eval is None:
        return []
    ends = {result.case: result.wrong for result in results}
    texts: list[str] = []
    for case in card.eval.tool_cases:
        reason = ends.get(case, "it was not played")
        if reason is not None:
            texts.append(f"{case.mode} of {case.tool!r}, asked {case.ask!r}: {reason}")
    return texts
