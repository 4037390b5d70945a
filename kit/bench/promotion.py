"""May a card go live? A draft, when it fits its deck, routes well enough on switches, and its answers pass; a card's
new version, when it fits its deck and both of its evaluations hold beside the version in place.

A new version is put in place or taken away here, in the one way that `evolve` and the page Cards share.
"""

import asyncio
import time
import uuid
from collections.abc import Collection, Iterable, Sequence
from datetime import date
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from kit.bench.canary import Gate, gates_of
from kit.bench.routing_report import RoutedTurn
from kit.bench.tool_cases import ToolCaseResult, play_cases
from kit.compose.canary import gained_tools, newest_of, versions_of
from kit.compose.deck import Deck, load_deck
from kit.compose.gained import GATED_DAYS
from kit.compose.read import card_file, next_file
from kit.compose.revision import RevisionError, check_clean
from kit.core.card import AgentCard
from kit.core.context import OPERATOR, Principal
from kit.core.documents.document import AgentEvent
from kit.core.errors import DeckError, StoreError, UnknownId
from kit.core.value import Value
from kit.metrics.estimate import Estimate, share
from kit.metrics.judgement import judgements
from kit.patterns.agents_as_tools import MEDIATED
from kit.stores.documents.protocol import EventFilter, EventStore

if TYPE_CHECKING:
    from kit.wire import Kit

THRESHOLD = 0.95
"""The source's first target, for each vertical, on intent switches."""
Change = Literal["promoted", "rolled back", "put back"]
CHANGE = "card.changed"
"""Type of the event."""
MOST = 50
"""Changes that are read, the newest."""


class Promotion(Value):
    """Whether a card version may go live, with the numbers and every reason why not."""

    card: AgentCard
    """Active when it may, else as it was."""
    gates: tuple[Gate, ...] = ()
    """The evaluations of a new version beside the one in place; of a draft none."""
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
    results: Iterable[RoutedTurn] = (),
    tool_results: Iterable[ToolCaseResult] = (),
    passed: Collection[bool] | None = None,
    gates: Sequence[Gate] = (),
) -> Promotion:
    """Checks one card of a deck against the schema, the deck, its tool cases, and then a draft
    against its switches and its judge, a card's new version against `gates`; nothing is written.

    `gates`: the evaluations of the card's new version (`gates_of`), which then is the card that is
    checked, and all of which must hold. A tool that it gained must be of age today.

    `results`: routed turns, as measured with the card bound. Only switches that touch the card
    count: turns that are for it after another, or for another after it. Every ordered pair with the
    deck's other active sub-agents must be among them. The share of
    switches and of answers that must be right is that of the card's `eval`, else 95 %. `tool_results`:
    what became of the card's cases for failing tools; each must be there and right. `passed`:
    whether each judged answer passed; None where nobody judged. Raises UnknownId for a card the
    deck does not hold.
    """
    if card_id not in deck.cards:
        raise UnknownId("card", card_id, deck.cards)
    card = newest_of(deck, card_id) if gates else deck.cards[card_id]
    threshold = card.eval.threshold if card.eval else THRESHOLD
    turns: list[RoutedTurn] = []
    for turn in results:
        if turn.switch and card_id in (*turn.expected, *turn.previous):
            turns.append(turn)
    right = sum(set(turn.expected) == set(turn.called) for turn in turns)
    switches = share(right, len(turns))
    answers = None if passed is None else share(sum(passed), len(passed))
    faults = [
        *obstacles(deck, card),
        *_failed_tool_cases(card, tool_results),
        *[str(gate) for gate in gates if not gate.holds],
    ]
    if not gates:
        faults += _uncovered(deck, card_id, turns)
    if not turns and not gates:
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
        card=card,
        gates=tuple(gates),
        switches=switches,
        answers=answers,
        threshold=threshold,
        faults=tuple(faults),
    )


def obstacles(deck: Deck, card: AgentCard) -> list[str]:
    """Returns what keeps a card, or the new version of one, from going live today, whatever its answers are worth."""
    return [*_unfit(deck, card), *_young_tools(deck.cards[card.id], card, date.today())]


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


def _young_tools(card: AgentCard, newer: AgentCard, today: date) -> list[str]:
    """Says which tools of a new version are still to be tried in its share of the sessions alone."""
    faults: list[str] = []
    for tool in gained_tools(card, newer):
        grant = newer.tool_grants.get(tool)
        if grant is None:
            faults.append(
                f"tool {tool!r} has no grant: put tool_grants with since and flag on the card"
            )
        elif (today - grant.since).days < GATED_DAYS:
            faults.append(
                f"tool {tool!r} is new since {grant.since}: it is tried for {GATED_DAYS} days first"
            )
    return faults


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


class CardChange(Value):
    """What was decided of a card's new version, and who decided it."""

    card: str
    version: str
    """As the new version's card calls itself; of one that was put back, the revision that it comes from."""
    change: Change
    by: str
    at: float

    def __str__(self) -> str:
        return f"version {self.version or 'unknown'} of {self.card} was {self.change} by {self.by}"


def check_new_version(deck: Deck, card_id: str) -> None:
    """Raises UnknownId for a card that the deck does not have, and DeckError for one without a new version."""
    if card_id in deck.next_cards:
        return
    if card_id not in deck.cards:
        raise UnknownId("card", card_id, deck.cards)
    fault = f"write it to {card_id}.next.yaml beside the card: the same id, another version"
    raise DeckError(f"card {card_id!r} has no new version", [fault])


async def examine(kit: "Kit", card_id: str) -> Promotion:
    """Plays the tool cases of a card's new version, and sets what was judged of both against each other.

    Raises UnknownId for a card that has no new version, and StoreError.
    """
    deck = kit.deck
    check_new_version(deck, card_id)
    verdicts = await judgements(kit.store.open_documents().events)
    team = kit.stages.team(MEDIATED, newer=frozenset((card_id,)))
    tools = await play_cases(team, card_id)
    return promote(deck, card_id, tool_results=tools, gates=gates_of(deck, card_id, verdicts))


async def put_in_place(
    kit: "Kit", folder: Path, card_id: str, who: Principal, by: str
) -> Promotion:
    """Writes a card's new version over the one in place where nothing speaks against it, and returns what does.

    Processes that run have the change once they are started again. Raises UnknownId, RevisionError for a file with
    changes that are not committed and for cards that are others than this kit was opened with, OSError and StoreError.
    """
    check_new_version(kit.deck, card_id)
    card = card_file(folder, card_id)
    newer = next_file(folder, card_id)
    if card is None or newer is None:
        raise DeckError(f"{folder} has changed", [f"the files of {card_id!r} are gone: start anew"])
    for path in (card, newer):
        await asyncio.to_thread(check_clean, path)
    await asyncio.to_thread(_check_same, kit, folder, card_id)
    verdict = await examine(kit, card_id)
    if verdict.promoted:
        card.write_bytes(newer.read_bytes())
        newer.unlink()
        events = kit.store.open_documents().events
        await _keep(events, card_id, verdict.card.version, "promoted", who, by)
    return verdict


def _check_same(kit: "Kit", folder: Path, card_id: str) -> None:
    """Raises RevisionError where the files hold other versions than those that run, and were judged."""
    deck = kit.deck
    stored = load_deck(folder, (), environment=kit.settings.environment)
    versions: list[object] = []
    for loaded in (deck, stored):
        both = (loaded.cards.get(card_id), loaded.next_cards.get(card_id))
        versions.append((both, versions_of(loaded, ()), versions_of(loaded, loaded.next_cards)))
    if versions[0] != versions[1]:
        raise RevisionError(
            f"the files of {card_id!r} were changed since this process was started, and that was never judged: "
            "start it again first"
        )


async def take_away(
    events: EventStore, folder: Path, card_id: str, version: str, who: Principal, by: str
) -> Path:
    """Removes the file of a card's new version, and returns it; `version` is what that card calls itself.

    Raises RevisionError where there is none, or one with changes that are not committed, OSError and StoreError.
    """
    newer = next_file(folder, card_id)
    if newer is None:
        raise RevisionError(
            f"{card_id!r} has no new version here; say by --to which revision to go back to"
        )
    await asyncio.to_thread(check_clean, newer)
    newer.unlink()
    await _keep(events, card_id, version, "rolled back", who, by)
    return newer


async def note_return(
    events: EventStore, part: str, revision: str, who: Principal, by: str
) -> None:
    """Stores that a card or a block is as it was at a revision again. Raises StoreError."""
    await _keep(events, part, revision, "put back", who, by)


async def card_changes(events: EventStore) -> list[CardChange]:
    """The changes of all cards, the newest first. Raises StoreError."""
    by = EventFilter(tenant_id=OPERATOR, event_type=CHANGE)
    stored = await events.query(by, MOST, newest_first=True)
    return [CardChange.model_validate(event.payload) for event in stored]


async def _keep(
    events: EventStore, part: str, version: str, change: Change, who: Principal, by: str
) -> None:
    now = time.time()
    card_change = CardChange(card=part, version=version, change=change, by=by, at=now)
    event = AgentEvent(
        event_id=uuid.uuid4().hex,
        tenant_id=who.tenant_id,
        user_id=who.user_id,
        agent=part,
        event_type=CHANGE,
        payload=card_change.model_dump(),
        ts=now,
    )
    try:
        await events.append(event)
    except StoreError as error:
        raise StoreError(
            f"the files of {part!r} are changed, and that {by} did it could not be stored: {error}"
        ) from error
