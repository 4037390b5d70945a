"""What a session held before one of its turns, for whoever asks that turn again."""

import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from kit.core.bodies.turn import ActStarted, PlanTaken, Resumed, TurnStarted
from kit.core.context import Recollection, Session
from kit.core.event import Event
from kit.core.language.retry import retries
from kit.core.record import (
    SUMMARY_NOTE,
    UNANSWERED,
    Message,
    Note,
    SessionRecall,
    ShownComponent,
    TurnRecord,
    summary_of,
)
from kit.stores.turn_filter import AGAIN

if TYPE_CHECKING:
    from kit.stores.turn_store import TurnStore

KNOWN = ("ok", "paused")
"""How a turn ended whose user was told what became of it, and need ask for nothing once more."""
EVERY = 1_000_000
"""Rows that are read of one session: all of them."""


def repeated_turn(session_id: str) -> str:
    """Returns the id of the turn that is asked again in a session; empty for a conversation of its own."""
    if session_id.startswith(AGAIN):
        return session_id.removeprefix(AGAIN).partition(":")[0]
    return ""


def recall_before(
    store: "TurnStore", turn: TurnRecord, agents: Iterable[str], limit: int
) -> SessionRecall:
    """Returns what a turn's session held before it, as the past of a new session in which the turn
    is asked again.

    Each of the `agents`, and the orchestrator, is told the newest `limit` lines of its narration.
    Earlier turns are those that were accepted earlier and had ended. Response chains of a provider
    are left out: they have gone on since.
    """
    session_id = turn.session_id
    principal = turn.principal
    recollection = recollection_of(store.events(turn.id, principal))
    earlier: dict[str, TurnRecord] = {}
    for record in store.turns_before(turn):
        if record.id not in recollection.beside:
            earlier[record.id] = record
    first = store.turn(repeated_turn(session_id), principal)
    if first is not None and not earlier:
        # What is asked again a second time knows what the first one knew.
        return recall_before(store, first, agents, limit)
    waiting = _questions_then(store, turn, earlier)
    history = _history_of(store, turn, "", earlier, waiting)
    order = list(dict.fromkeys(line.turn_id for line in history))
    notes: dict[str, Note] = {}
    summary = _summary_before(store, turn, order)
    if summary is not None:
        note, through = summary
        notes["summary"] = note
        summed_up = order[: order.index(through) + 1]
        history = [line for line in history if line.turn_id not in summed_up]
    lines = history[-limit:]
    for agent in agents:
        lines += _history_of(store, turn, agent, earlier, waiting)[-limit:]
    newest = set(order[-limit // 2 :])
    components: list[ShownComponent] = []
    for component in store.shown_components(turn.session_key, principal, turns=EVERY):
        if component.turn_id in newest:
            components.append(component)
    session = store.session(turn.session_key) or Session(id=session_id, principal=principal)
    return SessionRecall(
        session=session.replace(id=f"{AGAIN}{turn.id}:{uuid.uuid4().hex}"),
        recollection=recollection,
        notes=notes,
        lines=tuple(lines),
        components=tuple(components),
        asked_again=asked_once_more(store, reversed(earlier.values()), turn.message),
    )


def recollection_of(events: Iterable[Event]) -> Recollection:
    """Returns what a turn's log says that it was told of earlier turns; nothing where an earlier version wrote it."""
    for event in events:
        if isinstance(event.body, TurnStarted) and event.body.recollection is not None:
            return event.body.recollection
    return Recollection()


def asked_once_more(
    store: "TurnStore", turns: Iterable[TurnRecord], message: str
) -> TurnRecord | None:
    """Returns the earlier turn that a message asks for once more, in the same words or by "go on"; else None.

    `turns`: those before it, the newest first. It is the newest whose process died after it had begun an act or a
    plan, as long as its user was not told of that by such a message; else the newest of all, where it came to no end.
    """
    is_bare = retries(message)
    newest: TurnRecord | None = None
    told: set[str] = set()
    for turn in turns:
        if turn.status == "running":
            continue
        if newest is None or (retries(newest.message) and newest.status not in KNOWN):
            newest = turn
        if turn.status == "ok":
            told.add(GO_ON if retries(turn.message) else turn.message)
        is_asked = is_bare or turn.message == message
        is_open = turn.status == "interrupted" and told.isdisjoint((GO_ON, turn.message))
        if is_asked and is_open and _has_begun_something(store.events(turn.id, turn.principal)):
            return turn
    if newest is None or newest.status in KNOWN:
        return None
    if is_bare or newest.message == message:
        return newest
    return None


GO_ON = ""
"""Stands for all the words that only ask to go on."""


def _has_begun_something(events: Iterable[Event]) -> bool:
    """Whether a turn has begun an act or a plan."""
    return any(isinstance(event.body, ActStarted | PlanTaken) for event in events)


Questions = Mapping[str, Mapping[str, str]]
"""Turn -> agent -> what it asked, of turns that have been answered since."""


def _questions_then(
    store: "TurnStore", turn: TurnRecord, earlier: Mapping[str, TurnRecord]
) -> Questions:
    """Returns what earlier turns still asked when a turn began, and got an answer to since.

    Their lines were written again when they went on, and stand after those of the turn.
    """
    asked: dict[str, dict[str, str]] = {}
    is_later = False
    for line in store.history(turn.session_key, "", EVERY, reader=turn.principal):
        if line.turn_id == turn.id:
            is_later = True
        elif is_later and line.turn_id in earlier and line.turn_id not in asked:
            questions: dict[str, str] = {}
            for event in store.events(line.turn_id, turn.principal):
                if isinstance(event.body, Resumed):
                    questions = {asked.agent: asked.question for asked in event.body.asked}
            asked[line.turn_id] = questions
    return asked


def _history_of(
    store: "TurnStore",
    turn: TurnRecord,
    agent: str,
    earlier: Mapping[str, TurnRecord],
    waiting: Questions,
) -> list[Message]:
    """Returns the narration of one agent, or of the conversation, in earlier turns: as it was when the turn began."""
    lines: list[Message] = []
    for line in store.history(turn.session_key, agent, EVERY, reader=turn.principal):
        if line.turn_id not in earlier:
            continue
        questions = waiting.get(line.turn_id, {})
        if line.role == "assistant" and questions and not agent:
            line = line.replace(text=" ".join(questions.values()))
        elif line.role == "assistant" and agent in questions:
            line = line.replace(text=UNANSWERED)
        lines.append(line)
    # Lines that were written again come last in the store.
    places = {turn_id: place for place, turn_id in enumerate(earlier)}
    return sorted(lines, key=lambda line: places[line.turn_id])


def _summary_before(
    store: "TurnStore", turn: TurnRecord, order: Sequence[str]
) -> tuple[Note, str] | None:
    """Returns the session's summary as it was before a turn, and the last turn that it sums up; None
    where there was none, or nobody can read it.

    Each is kept under the turn that wrote it. Earlier versions kept the newest one alone.
    """
    for turn_id in reversed(order):
        note = store.note(turn.session_key, summary_of(turn_id))
        if note is not None:
            break
    else:
        note = store.note(turn.session_key, SUMMARY_NOTE)
        if note is None or note.at >= turn.started_at:
            return None
    fields = note.fields("through")
    if fields is None or fields["through"] not in order:
        return None
    return note, fields["through"]
