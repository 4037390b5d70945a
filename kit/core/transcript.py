"""What a person has read of a turn so far, derived from its events."""

from collections.abc import Iterable

from kit.core.bodies.speech import Text, TextReplaced
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
    parts: dict[str, list[tuple[int, str]]] = {"lead": [], "answer": []}
    for event in events:
        body = event.body
        # Most events are neither, and pydantic's classes answer a missed isinstance by Python code.
        if type(body) is Text:
            parts[body.channel].append((event.seq, body.text))
        # What was streamed before it and stands outside its range stays: the lead, or earlier parts.
        elif type(body) is TextReplaced:
            standing = [part for part in parts[body.channel] if part[0] < body.from_seq]
            parts[body.channel] = [*standing, (event.seq, body.text)]
    answer = parts["answer"]
    return _transcript(
        lead="".join([text for _, text in parts["lead"]]),
        answer="".join([text for _, text in answer]),
        answer_seq=answer[0][0] if answer else None,
    )
