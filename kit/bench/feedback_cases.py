"""Makes cases of the answers that people disliked: a file that a grid plays."""

from collections.abc import Iterator
from pathlib import Path

from kit.bench.case import Ask, Case, as_line, kind_of
from kit.core.context import OPERATOR
from kit.core.errors import DataError
from kit.core.record import Feedback, TurnRecord
from kit.metrics.summary import ALL
from kit.stores.turn_store import TurnStore


def write_cases(store: TurnStore, path: Path, tenant: str | None = None) -> int:
    """Writes a case for each turn with a thumb down, of one tenant or all, the oldest first;
    returns how many there are.

    Whom a case expects to be asked is who was asked: where that was the mistake, a person corrects
    it. Raises DataError where the file cannot be written.
    """
    cases = list(disliked(store, tenant))
    try:
        path.write_text("".join(map(as_line, cases)), encoding="utf-8", newline="\n")
    except OSError as error:
        raise DataError(
            f"the cases cannot be written to {path}: {error.strerror or error}; choose another file"
        ) from error
    return len(cases)


def disliked(store: TurnStore, tenant: str | None = None) -> Iterator[Case]:
    """Returns a case for each stored turn with a thumb down; earlier turns of its conversation are its history."""
    for thumb in store.feedbacks(score=0):
        turn = store.turn(thumb.turn_id, OPERATOR)
        if turn is not None and tenant in (None, turn.tenant_id):
            yield _case(store, turn, thumb)


def _case(store: TurnStore, turn: TurnRecord, thumb: Feedback) -> Case:
    asks: list[Ask] = []
    # The store gives the newest turn first.
    for past in reversed(store.turns(turn.session_id, turn.tenant_id, turn.user_id, limit=ALL)):
        if past.started_at < turn.started_at:
            asks.append(
                Ask(user=past.message, expected=past.invoked, assistant=past.text, skip=True)
            )
    asks.append(Ask(user=turn.message, expected=turn.invoked))
    domain = "out_of_scope"
    if len(turn.invoked) == 1:
        domain = turn.invoked[0]
    elif turn.invoked:
        domain = "mixed"
    source = "thumb down"
    if thumb.note:
        source += f": {thumb.note}"
    return Case(
        id=f"thumb-{turn.id}",
        kind=kind_of(asks),
        domain=domain,
        turns=tuple(asks),
        principal=turn.principal,
        source=source,
    )
