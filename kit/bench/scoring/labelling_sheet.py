"""A labelling sheet: a seeded, stratified sample of stored turns, written for a person or a judge, and read back."""

import random
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from kit.bench.json_lines import validate_lines
from kit.bench.routing_report import NOBODY
from kit.bench.scoring.observation import observe
from kit.core.context import OPERATOR
from kit.core.errors import DataError
from kit.core.record import ShownComponent, TurnRecord
from kit.core.value import Value
from kit.metrics.summary import ALL, Label, turns_since
from kit.stores.rows import log_of
from kit.stores.shown import shown_in
from kit.stores.turn_store import TurnStore

EARLIER = 3
"""Turns before it that a labeller sees."""


class Item(Value):
    """One stored turn as whoever labels it sees it; `label` is theirs to fill in."""

    turn_id: str
    strata: tuple[str, ...]
    """Whom it was drawn for: a turn that called two may be drawn for either."""
    message: str
    earlier: tuple[str, ...] = ()
    """What was said in the turns before, `user: ...` and `assistant: ...`."""
    before: tuple[str, ...] = ()
    """Whom the turn before called."""
    shown: tuple[ShownComponent, ...] = ()
    """What was shown before, oldest turn first."""
    called: tuple[str, ...] = ()
    prior_context: dict[str, str] = {}
    answers: dict[str, str] = {}
    """What each sub-agent answered; one that failed is not here."""
    reply: str
    label: Label

    @property
    def open(self) -> bool:
        """Nobody has said yet whom it should have asked."""
        return self.label.agents is None


def sample(turns: Iterable[TurnRecord], per_stratum: int, seed: int) -> dict[str, tuple[str, ...]]:
    """Turn id -> whom it was drawn for: at most `per_stratum` turns for each sub-agent called, and
    for nobody.

    The same for the same turns and seed, in any order; what is drawn for one does not depend on the
    others. Turns that run or were stopped are left out.
    """
    strata: dict[str, list[str]] = defaultdict(list)
    for turn in turns:
        if turn.status in ("ok", "failed", "deadline"):
            for name in turn.invoked or (NOBODY,):
                strata[name].append(turn.id)
    strata_of: dict[str, list[str]] = defaultdict(list)
    for name, ids in sorted(strata.items()):
        generator = random.Random(f"{seed}:{name}")
        for turn_id in generator.sample(sorted(ids), min(per_stratum, len(ids))):
            strata_of[turn_id].append(name)
    return {turn_id: tuple(names) for turn_id, names in sorted(strata_of.items())}


def items(
    store: TurnStore, per_stratum: int, seed: int, since: float = 0.0, tenant: str | None = None
) -> list[Item]:
    """The sample of a store's turns begun at `since` (seconds since the epoch) or later, nothing labelled yet."""
    turns = {turn.id: turn for turn in turns_since(store, since, tenant)}
    sheet: list[Item] = []
    for turn_id, strata in sample(turns.values(), per_stratum, seed).items():
        sheet.append(item_of(store, turns[turn_id], strata))
    return sheet


def item_of(store: TurnStore, turn: TurnRecord, strata: Sequence[str] = ()) -> Item:
    """A stored turn with what came before it in its session."""
    past: list[TurnRecord] = []
    for earlier_turn in store.turns(turn.session_id, turn.tenant_id, limit=ALL):
        if earlier_turn.started_at < turn.started_at and earlier_turn.seconds is not None:
            past.append(earlier_turn)
    texts: list[str] = []
    shown: list[ShownComponent] = []
    for earlier_turn in reversed(past[:EARLIER]):
        texts += [f"user: {earlier_turn.message}", f"assistant: {earlier_turn.text}"]
        events = log_of(store.events(earlier_turn.id, OPERATOR)).decode()
        shown += shown_in(earlier_turn.id, events)
    observation = observe(store.events(turn.id, OPERATOR))
    return Item(
        turn_id=turn.id,
        strata=tuple(strata),
        message=turn.message,
        earlier=tuple(texts),
        before=past[0].invoked if past else (),
        shown=tuple(shown),
        called=turn.invoked,
        prior_context=dict(observation.prior_context),
        answers=dict(observation.answers),
        reply=turn.text,
        label=Label(turn_id=turn.id),
    )


def write_sheet(path: Path, sheet: Iterable[Item]) -> None:
    """One turn a line, its label last: `"label": {"turn_id": ..., "agents": null, ...}` is what a labeller edits."""
    with path.open("w", encoding="utf-8") as file:
        for item in sheet:
            file.write(item.model_dump_json() + "\n")


def read_sheet(path: Path) -> list[Item]:
    """A sheet, labelled in part or whole. Raises DataError with file and line for what is none, or
    labels another turn."""
    by_turn: dict[str, Item] = {}
    for where, item in validate_lines(Item, path, "a line of a labelling sheet"):
        if item.label.turn_id != item.turn_id:
            raise DataError(
                f"{where}: the label is of turn {item.label.turn_id!r}; it belongs to {item.turn_id!r}"
            )
        if item.turn_id in by_turn:
            raise DataError(f"{where}: turn {item.turn_id!r} stands here twice; take one out")
        by_turn[item.turn_id] = item
    return list(by_turn.values())
