"""The one alert of the kit: a reply for another principal came in, which must never happen."""

import logging
from collections.abc import Iterable, Sequence
from operator import attrgetter

from kit.core.record import TurnRecord
from kit.core.value import Value
from kit.stores.tally import Mismatch

MISMATCH = 'ps6.envelope.principal_mismatch_total{consumer="consumer-agent"}'
WINDOW = 300.0
"""Seconds: more than none in any five minutes is an alert."""
log = logging.getLogger("kit.alert")


class Alert(Value):
    """Mismatches within one window; times are seconds since the epoch."""

    metric: str = MISMATCH
    since: float
    """The first of them: the window is [since, since + WINDOW)."""
    last: float
    count: int
    turn_ids: tuple[str, ...]
    """Turns they happened in, each once."""


def alerts(mismatches: Iterable[Mismatch], now: float | None = None) -> tuple[Alert, ...]:
    """Every window with a mismatch, oldest first; with `now`, only what fires then: mismatches in
    (now - WINDOW, now]."""
    windows: list[list[Mismatch]] = []
    # Oldest first: a window begins with its first mismatch.
    for mismatch in sorted(mismatches, key=attrgetter("at", "turn_id")):
        if now is not None and not now - WINDOW < mismatch.at <= now:
            continue
        if windows and mismatch.at < windows[-1][0].at + WINDOW:
            windows[-1].append(mismatch)
        else:
            windows.append([mismatch])
    return tuple(map(_alert_of, windows))


def _alert_of(mismatches: Sequence[Mismatch]) -> Alert:
    turn_ids = dict.fromkeys(mismatch.turn_id for mismatch in mismatches)
    return Alert(
        since=mismatches[0].at,
        last=mismatches[-1].at,
        count=len(mismatches),
        turn_ids=tuple(turn_ids),
    )


def log_mismatch(turn: TurnRecord) -> None:
    """Says so at once, for whoever reads the log; names the turn and nothing of what was in it."""
    log.critical("%s: %d in turn %s", MISMATCH, len(turn.measures.mismatches), turn.id)
