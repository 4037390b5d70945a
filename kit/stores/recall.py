"""What a session held before one of its turns, for whoever asks that turn again."""

import uuid
from collections.abc import Iterable

from kit.core.context import Session
from kit.core.record import UNANSWERED, SessionRecall, TurnRecord
from kit.stores.protocol import Store

EVERY = 1_000_000
"""Rows that are read of one session: all of them."""
AGAIN = "again:"


def repeated_turn(session_id: str) -> str:
    """Returns the id of the turn that is asked again in a session; empty for a conversation of its own."""
    if session_id.startswith(AGAIN):
        return session_id.removeprefix(AGAIN).partition(":")[0]
    return ""


def recall_before(
    store: Store, turn: TurnRecord, agents: Iterable[str], most: int
) -> SessionRecall:
    """Returns what a turn's session held before it, as the past of a new session in which the turn
    is asked again.

    Each of the `agents`, and the orchestrator, is told the newest `most` lines of its narration.
    Earlier turns are those that began earlier. Response chains of a provider are left out: they
    have gone on since.
    """
    own = turn.session_id
    who = turn.principal
    turns = store.turns(own, who.tenant_id, who.user_id, limit=EVERY)
    earlier = {one.id: one for one in turns if one.started_at < turn.started_at}
    first = store.turn(repeated_turn(own), who)
    if first is not None and not earlier:
        # what is asked again a second time knows what the first one knew
        return recall_before(store, first, agents, most)
    told = {
        reader: [m for m in store.history(own, reader, EVERY, who=who) if m.turn_id in earlier]
        for reader in ("", *agents)
    }
    order = list(dict.fromkeys(line.turn_id for line in told[""]))
    summary = store.note(own, "summary")
    if summary is not None and summary.at < turn.started_at:
        notes = {"summary": summary}
    else:
        notes = {}
    if summary is not None and notes:
        last = summary.fields("through")
    else:
        last = None
    if last is not None and last["through"] in order:
        through = order.index(last["through"])
        told[""] = [line for line in told[""] if order.index(line.turn_id) > through]
    else:
        notes = {}  # there is no summary of then, or nobody can read it
    ends: list[TurnRecord] = []
    for turn_id in reversed(order):
        if (one := earlier[turn_id]).status != "interrupted":
            ends.append(one)
    routed = next(
        (end for end in ends if end.invoked or end.status in ("failed", "deadline", "cancelled")),
        None,
    )
    lines = tuple(line for reader in told.values() for line in reader[-most:])
    unanswered = (
        line.agent
        for line in lines
        if routed and line.turn_id == routed.id and line.text == UNANSWERED
    )
    shown = store.shown_components(own, who, turns=len(turns))
    return SessionRecall(
        session=(store.session(own) or Session(id=own, principal=who)).replace(
            id=f"{AGAIN}{turn.id}:{uuid.uuid4().hex}"
        ),
        in_play=ends[0].invoked if ends else (),
        routed=routed and routed.invoked,
        unanswered=tuple(dict.fromkeys(filter(None, unanswered))),
        notes=notes,
        lines=lines,
        components=tuple(item for item in shown if item.turn_id in order[-most // 2 :]),
    )
