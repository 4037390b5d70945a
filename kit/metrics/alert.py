"""The one alert of the kit: a reply for another principal came in, which must never happen."""

import logging
from collections.abc import Iterable

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
    hits = sorted((mismatch.at, mismatch.turn_id) for mismatch in mismatches)
    if now is not None:
        hits = [hit for hit in hits if now - WINDOW < hit[0] <= now]
    windows: list[list[tuple[float, str]]] = []
    for hit in hits:
        if windows and hit[0] < windows[-1][0][0] + WINDOW:
            windows[-1].append(hit)
        else:
            windows.append([hit])
    return tuple(
        Alert(
            since=hits[0][0],
            last=hits[-1][0],
            count=len(hits),
            turn_ids=tuple(dict.fromkeys(turn for _, turn in hits)),
        )
        for hits in windows
    )


def log_mismatch(turn: TurnRecord) -> None:
    """Says so at once, for whoever reads the log; names the turn and nothing of what was in it."""
    log.critical("%s: %d in turn %s", MISMATCH, len(turn.measures.mismatches), turn.id)
