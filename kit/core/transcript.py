"""What a person has read of a turn so far, derived from its events."""

from collections.abc import Iterable

from kit.core.event import Event, Text, TextReplaced
from kit.core.value import Value


class Transcript(Value):
    """The text on the page: the lead (said before sub-agents were known to be called), then the answer."""

    lead: str = ""
    answer: str = ""
    synthetic_lead: bool = False
    answer_seq: int | None = None
    """Seq of the first answer text that still stands."""


def transcript(events: Iterable[Event]) -> Transcript:
    """Folds texts and their replacements."""
    parts: dict[str, list[tuple[int, str]]] = {"lead": [], "answer": []}
    synthetic = False
    for event in events:
        match event.body:
            case Text(channel=channel, text=text, synthetic=made):
                parts[channel].append((event.seq, text))
                synthetic = synthetic or made
            case TextReplaced(channel=channel, from_seq=seq, text=text):
                parts[channel] = [part for part in parts[channel] if part[0] < seq] + [(event.seq, text)]
            case _:
                pass
    answer = parts["answer"]
    return Transcript(
        lead="".join(text for _, text in parts["lead"]),
        answer="".join(text for _, text in answer),
        synthetic_lead=synthetic,
        answer_seq=answer[0][0] if answer else None,
    )
