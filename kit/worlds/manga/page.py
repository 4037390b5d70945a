"""What the chat page shows of the manga library: a title as a card."""

from collections.abc import Mapping, Sequence
from typing import cast

from kit.compose.page import ComponentCard, Payload, Renderer


def draw_titles(payloads: Sequence[Payload]) -> Sequence[ComponentCard]:
    """Draws a card for each title: its genres, its years, its premise, and what reviewers made of
    it where that is known."""
    return [_title(row) for row in payloads]


def _title(row: Payload) -> ComponentCard:
    genres = ", ".join(map(str, cast("Sequence[object]", row.get("genres") or ()))).capitalize()
    years = f"{row.get('year', '')}, {'still running' if row.get('running') else 'complete'}"
    if "score" in row:
        score = f"{row['score']} of 100"
    else:
        score = ""
    return ComponentCard(
        title=str(row.get("title", "")),
        mark=score,
        lines=(genres, years, str(row.get("premise", ""))),
    )


RENDERERS: Mapping[str, Renderer] = {"title": draw_titles}
"""Component type -> what draws it."""
