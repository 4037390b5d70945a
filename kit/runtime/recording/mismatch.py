"""Why a request does not fit its record, for a person: which call, which part of the request, the
lines that differ."""

from collections.abc import Sequence
from difflib import SequenceMatcher, unified_diff
from textwrap import wrap

from kit.runtime.recording.recorded_call import RecordedCall, Request

WIDTH = 100
MOST_LINES = 14
"""Lines of a diff that are shown."""


def mismatch(
    source: str, call: str, request: Request, recorded: Sequence[RecordedCall], advice: str
) -> str:
    """Returns the message for a request that no recorded call answers.

    `source` names the record and `call` what was asked for; `recorded` are the calls from the same place.
    """
    if not recorded:
        excerpt = _excerpt(request[-1][1])
        return f"{source}: the recording was never asked from {call}; it asks now:\n{excerpt}\n{advice}"
    nearest = max((known.request for known in recorded), key=lambda old: _alike(old, request))
    label, old, new = _first_change(nearest, request)
    diff = list(unified_diff(_lines(old), _lines(new), "recorded", "now", lineterm="", n=1))
    lines = [f"{source}: {call} does not ask what was recorded: {label}"]
    for line in diff[:MOST_LINES]:
        lines.append(f"  {line}")
    if len(diff) > MOST_LINES:
        lines.append(f"  ({len(diff) - MOST_LINES} more lines)")
    return "\n".join([*lines, advice])


def _first_change(old_request: Request, request: Request) -> tuple[str, str, str]:
    """Returns the first part that differs: in what way, its old text, its new text."""
    old = dict(old_request)
    new = dict(request)
    for label, text in request:
        if label not in old:
            return f"{label} is new", "", text
        if old[label] != text:
            return f"{label} changed", old[label], text
    label = next(label for label in old if label not in new)
    return f"{label} is gone", old[label], ""


def _alike(old: Request, new: Request) -> float:
    """Returns how many parts are equal, and as a fraction how similar the last ones are."""
    equal_parts = 0
    for old_part, new_part in zip(old, new, strict=False):
        equal_parts += old_part == new_part
    # Of a long message the end is new; comparing all of it would take seconds.
    old_end = old[-1][1][-500:]
    new_end = new[-1][1][-500:]
    return equal_parts + SequenceMatcher(None, old_end, new_end).ratio()


def _lines(text: str) -> list[str]:
    lines: list[str] = []
    for line in text.splitlines():
        lines += wrap(line, WIDTH) or [""]
    return lines


def _excerpt(text: str) -> str:
    lines = _lines(text)
    excerpt = "\n".join(f"  {line}" for line in lines[:4])
    if len(lines) > 4:
        return f"{excerpt}\n  ..."
    return excerpt
