"""What a person has read of a turn so far, derived from its events."""

from collections.abc import Iterable, Sequence
from itertools import pairwise

from kit.core.bodies.speech import Separator, Text, TextReplaced
from kit.core.event import Event
from kit.core.value import Value, builder


class Transcript(Value):
    """The text on the page: the lead (said before sub-agents were known to be called), then the answer."""

    lead: str = ""
    answer: str = ""
    answer_seq: int | None = None
    """Seq of the first answer text that still stands."""


_transcript = builder(Transcript)


def transcript(events: Iterable[Event]) -> Transcript:
    """Folds texts and their replacements."""
    # Of each channel, seq -> text.
    parts: dict[str, dict[int, str]] = {"lead": {}, "answer": {}}
    for event in events:
        body = event.body
        # Most events are neither, and pydantic's classes answer a missed isinstance by Python code.
        if type(body) is Text:
            parts[body.channel][event.seq] = body.text
        # What was streamed before it and stands outside its range stays: the lead, or earlier parts.
        elif type(body) is TextReplaced:
            texts = parts[body.channel].items()
            standing = {seq: text for seq, text in texts if seq < body.from_seq}
            parts[body.channel] = {**standing, event.seq: body.text}
    answer = parts["answer"]
    return _transcript(
        lead="".join(parts["lead"].values()),
        answer="".join(answer.values()),
        answer_seq=next(iter(answer), None),
    )


def answer_parts(text: str, events: Sequence[Event]) -> list[str]:
    """Cuts an answer at the separators of its log; returns it whole where the page showed other words in the end."""
    separators: list[int] = []
    for event in events:
        if type(event.body) is Separator:
            separators.append(event.seq)
    edges = [-1, *separators, len(events)]
    parts: list[str] = []
    for low, high in pairwise(edges):
        parts.append(transcript(events[low + 1 : high]).answer.strip())
    is_whole = "".join("".join(parts).split()) == "".join(text.split())
    if is_whole and text:
        return [part for part in parts if part]
    return [text]
