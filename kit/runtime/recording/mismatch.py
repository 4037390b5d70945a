"""Why a replay does not fit its recording, for a person: which call, which part of the request, the
lines that differ."""

from collections.abc import Sequence
from difflib import SequenceMatcher, unified_diff
from textwrap import wrap

from kit.runtime.recording.recorded_call import Request, Take

WIDTH = 100
MOST = 14
"""Lines of a diff that are shown."""


def misfit(
    path: str, track: str, place: str, request: Request, takes: Sequence[Take], again: str
) -> str:
    """Returns the message for a request that no take answers; `takes` were recorded from the same place."""
    if track:
        call = f"{place}, {track}"
    else:
        call = place
    if not takes:
        return f"{path}: the recording was never asked from {call}; it asks now:\n{_excerpt(request[-1][1])}\n{again}"
    before = max((take.request for take in takes), key=lambda old: _alike(old, request))
    label, old, new = _first_change(before, request)
    lines = list(unified_diff(_lines(old), _lines(new), "recorded", "now", lineterm="", n=1))
    if len(lines) > MOST:
        more = [f"  ({len(lines) - MOST} more lines)"]
    else:
        more = []
    diff = "\n".join(f"  {line}" for line in lines[:MOST])
    return "\n".join(
        [f"{path}: {call} does not ask what was recorded: {label}", diff, *more, again]
    )


def _first_change(before: Request, request: Request) -> tuple[str, str, str]:
    """Returns the first part that differs: in what way, its old text, its new text."""
    old = dict(before)
    new = dict(request)
    for label, text in request:
        if label not in old:
            return f"{label} is new", "", text
        if old[label] != text:
            return f"{label} changed", old[label], text
    label = next(label for label in old if label not in new)
    return f"{label} is gone", old[label], ""


def _alike(one: Request, other: Request) -> float:
    """Returns how many parts are equal, and as a fraction how similar the last ones are."""
    same = sum(a == b for a, b in zip(one, other, strict=False))
    return same + SequenceMatcher(None, one[-1][1][-500:], other[-1][1][-500:]).ratio()


def _lines(text: str) -> list[str]:
    lines: list[str] = []
    for line in text.splitlines():
        for piece in wrap(line, WIDTH) or [""]:
            lines.append(piece)
    return lines


def _excerpt(text: str) -> str:
    lines = _lines(text)
    return "\n".join(f"  {line}" for line in lines[:4]) + ("\n  ..." if len(lines) > 4 else "")
