"""A turn as lanes on one time axis: the orchestrator, a lane for each sub-agent, what was left out,
and the answer.

All times are seconds since the turn began. The lanes are the same for a turn that runs, for a stored
one and for its replay: a drawing shows of them what had happened until a moment.
"""

import itertools
import re
import time
from collections.abc import Iterator, Sequence
from typing import Literal

from kit.core.bodies.speech import Text
from kit.core.display.count import enumeration, many
from kit.core.display.made_to_fail import WantedFault
from kit.core.trace import Span, Trace
from kit.core.value import Value
from kit.models.json_prose import prose
from kit.ui.shared.tag import Tone
from kit.ui.shared.turn_facts import fault_words, headline
from kit.ui.shared.turn_sentence import owning_up_sentence, part_words
from kit.ui.shared.turn_view import TONES, VERDICTS, Step, TurnView
from kit.ui.shared.wording import label, span_name

LONGEST = 280
"""Characters of a finding that stand on its lane; its transcript has all of them."""
_DOING = {"decide": "Deciding whom to ask", "compose": "Writing the answer"}
_MARKS_OF_MARKDOWN = re.compile(r"[*_`#>|]+|^[ \t]*[-+][ \t]+", re.MULTILINE)


class Phrase(Value):
    """Words that stand on a lane for a while."""

    text: str
    start: float
    until: float | None = None
    """None for words that stay."""


class Mark(Value):
    """A call within a lane: of a tool, or of the orchestrator's model."""

    name: str
    start: float
    end: float | None = None
    """None while it runs."""
    failed: bool = False
    is_replay: bool = False
    """Played from a recording: nothing was called."""


class Lane(Value):
    """One line of the canvas."""

    kind: Literal["orchestrator", "agent", "omitted", "answer"]
    label: str
    tone: Tone = ""
    """How it ended; `busy` while it works."""
    start: float
    end: float | None = None
    """None while it works."""
    marks: tuple[Mark, ...] = ()
    words: tuple[Phrase, ...] = ()
    """What it does, then what it found or why it failed."""
    verdicts: tuple[Phrase, ...] = ()
    """How it stands, in a word or two."""
    finding: str = ""
    """All of what it found, as it said it."""
    used_at: float | None = None
    """When the answer began for which its finding was used."""
    broken_at: float | None = None
    """When somebody made it fail, in the middle of its work."""
    is_replay: bool = False

    @property
    def sentence(self) -> str:
        """The lane as it stands now, for who cannot see it."""
        sentence = self.label
        if self.verdicts:
            sentence += f", {self.verdicts[-1].text}"
        # What one at work does would be sent with each line that it says, and is in its transcript.
        if self.words and self.end is not None:
            sentence += f": {self.words[-1].text}"
        return sentence


def lanes_of(view: TurnView) -> tuple[Lane, ...]:
    """Returns the lanes of a turn, from top to bottom; those of sub-agents in the order of its steps."""
    trace = view.trace
    steps = {step.span_id: step for step in view.steps}
    owners = _owners(trace, steps)
    own_calls: list[Span] = []
    for span in trace.spans:
        if span.kind == "model" and span.id not in owners:
            own_calls.append(span)
    answer_at = _answer_start(view, own_calls)
    lanes = [_orchestrator(view, own_calls)]
    spans = {span.id: span for span in trace.spans}
    for step in view.steps:
        marks: list[Mark] = []
        for span in trace.spans:
            if span.kind == "tool" and owners.get(span.id) == step.span_id:
                marks.append(_mark(span))
        faults = [wanted for wanted in view.wanted_faults if wanted.agent == step.agent]
        part = part_words(step, view)
        lanes.append(_agent(step, part, spans[step.span_id], marks, faults, answer_at))
    start = min((step.start for step in view.steps), default=0.0)
    lanes += _omitted(view, start)
    lanes.append(_answer(view, answer_at))
    return tuple(lanes)


def end_of(view: TurnView) -> float | None:
    """Returns when a turn ended; None while it runs."""
    if view.running:
        return None
    if view.seconds is not None:
        return view.seconds
    # Of a turn that nobody saw end the last event is all that is known.
    if view.events:
        return view.events[-1].at
    return 0.0


def now_of(view: TurnView) -> float:
    """Returns the seconds since a turn began, of one that is over until it ended."""
    end = end_of(view)
    if end is None:
        return max(0.0, time.time() - view.started_at)
    return end


def _owners(trace: Trace, steps: dict[str, Step]) -> dict[str, str]:
    """Returns each span that lies within a step, with the id of that step."""
    owners: dict[str, str] = {}
    # Parents began before their parts.
    for span in trace.spans:
        if span.id in steps:
            owners[span.id] = span.id
        elif span.parent_id in owners:
            owners[span.id] = owners[span.parent_id]
    return owners


def _answer_start(view: TurnView, own_calls: Sequence[Span]) -> float | None:
    """Returns when the orchestrator began its answer: to compose it, or to say it."""
    begun: list[float] = []
    for span in own_calls:
        if span.attributes.get("purpose") == "compose":
            begun.append(span.started)
    for event in view.events:
        if isinstance(event.body, Text) and event.body.channel == "answer":
            begun.append(event.at)
            break
    # The first call may have been followed by another round of sub-agents.
    return min(begun, default=end_of(view))


def _agent(
    step: Step,
    part: str,
    span: Span,
    marks: Sequence[Mark],
    faults: Sequence[WantedFault],
    answer_at: float | None,
) -> Lane:
    words: list[Phrase] = []
    if part:
        words.append(Phrase(text=part, start=step.start))
    for entry in step.entries:
        if entry.is_status:
            words.append(
                Phrase(text=f"{part}: {entry.text}" if part else entry.text, start=entry.at)
            )
    broken_at: float | None = None
    for fault in faults:
        if fault.at is not None and (step.end is None or fault.at <= step.end):
            broken_at = fault.at
            words.append(Phrase(text=f"Broken here: {fault_words(fault.fault)}", start=broken_at))
    words.sort(key=lambda phrase: phrase.start)
    verdicts = [Phrase(text="working", start=step.start, until=step.end)]
    finding = ""
    used_at = None
    if step.end is not None:
        text = step.verdict
        if faults:
            text += ", broken on purpose"
        if part:
            text = f"{part}: {text}"
        if step.state in ("ok", "partial"):
            finding = span.output
            used_at = answer_at
            text = _plain(finding)
            if step.note and step.note.lower() not in text.lower():
                text += f" ({step.note})"
        words.append(Phrase(text=text, start=step.end))
        ending = f"{VERDICTS[step.state]} {step.seconds(step.end):.1f} s"
        verdicts.append(Phrase(text=ending, start=step.end))
    return Lane(
        kind="agent",
        label=step.label,
        tone=TONES[step.state],
        start=step.start,
        end=step.end,
        marks=tuple(marks),
        words=_in_turn(words),
        verdicts=tuple(verdicts),
        finding=finding,
        used_at=used_at,
        broken_at=broken_at,
        is_replay=span.is_replay,
    )


def _plain(text: str) -> str:
    """Returns the beginning of a finding without its markdown; of JSON what reads as words."""
    words = " ".join(_MARKS_OF_MARKDOWN.sub(" ", prose(text)).split())
    if len(words) > LONGEST:
        return words[:LONGEST] + "…"
    return words


def _in_turn(phrases: Sequence[Phrase]) -> tuple[Phrase, ...]:
    """Returns phrases each of which stands until the next one."""
    chain = list(phrases[-1:])
    for phrase, following in itertools.pairwise(phrases):
        chain.insert(-1, phrase.model_copy(update={"until": following.start}))
    return tuple(chain)


def _mark(span: Span) -> Mark:
    return Mark(
        name=span_name(span),
        start=span.started,
        end=None if span.status == "running" else span.ended,
        failed=span.status == "error",
        is_replay=span.is_replay,
    )


def _orchestrator(view: TurnView, own_calls: Sequence[Span]) -> Lane:
    moments = {0.0}
    for span in own_calls:
        moments |= {span.started, span.ended}
    for step in view.steps:
        moments.add(step.start)
        if step.end is not None:
            moments.add(step.end)
    end = end_of(view)
    phrases: list[Phrase] = []
    for moment in sorted(moments):
        text = _doing(view.steps, own_calls, moment)
        if not phrases or phrases[-1].text != text:
            phrases.append(Phrase(text=text, start=moment))
    verdicts = [Phrase(text="working", start=0.0, until=end)]
    if end is not None:
        phrases.append(Phrase(text=_request_words(view), start=end))
        verdicts.append(Phrase(text=f"done {end:.1f} s", start=end))
    return Lane(
        kind="orchestrator",
        label="Orchestrator",
        tone="busy" if end is None else "",
        start=0.0,
        end=end,
        marks=tuple(map(_mark, own_calls)),
        words=_in_turn(phrases),
        verdicts=tuple(verdicts),
    )


def _doing(steps: Sequence[Step], own_calls: Sequence[Span], moment: float) -> str:
    """Returns what the orchestrator does from a moment on."""
    for span in own_calls:
        runs_on = span.status == "running" or moment < span.ended
        if span.started <= moment and runs_on:
            return _DOING.get(str(span.attributes.get("purpose")), "Thinking")
    return _waiting(steps, moment)


def _waiting(steps: Sequence[Step], moment: float) -> str:
    at_work: dict[str, None] = {}
    has_ended = False
    for step in steps:
        if step.end is not None and step.end <= moment:
            has_ended = True
        elif step.start <= moment:
            at_work[step.label] = None
    if not at_work:
        return ""
    text = enumeration(list(at_work))
    if has_ended:
        return f"Still waiting for {text}"
    return f"Waiting for {text}"


def _request_words(view: TurnView) -> str:
    words = "Asked nobody"
    if view.is_plan and view.steps:
        words = view.asked_words
    elif view.steps:
        words = f"Asked {many(len(view.steps), 'sub-agent')}"
    elif view.usage is not None and view.usage.tool_calls:
        words = "Used its own tools"
    if view.skipped:
        words += f", left out {many(len(view.skipped), 'part')}"
    return words


def _omitted(view: TurnView, start: float) -> Iterator[Lane]:
    reasons = [(label(agent), "over the limit") for agent in view.over_cap]
    reasons += [(name, "nobody was asked") for name in view.parts.left_out.names]
    for name, reason in reasons:
        yield Lane(
            kind="omitted",
            label=name,
            tone="warn",
            start=start,
            end=start,
            words=(Phrase(text=reason, start=start),),
            verdicts=(Phrase(text="left out", start=start),),
        )


def _answer(view: TurnView, start: float | None) -> Lane:
    end = end_of(view)
    words: list[Phrase] = []
    verdicts: list[Phrase] = []
    if start is not None and start != end:
        words.append(Phrase(text="Is being written from what came back", start=start))
        verdicts.append(Phrase(text="writing", start=start, until=end))
    tone: Tone = "busy"
    if end is not None:
        ending = headline(view)
        tone = ending.tone
        verdicts.append(Phrase(text=ending.text, start=end))
        words.append(Phrase(text=owning_up_sentence(view) or view.regret, start=end))
    return Lane(
        kind="answer",
        label="Answer",
        tone=tone,
        # It has not begun: no moment of the axis shows it.
        start=BEYOND if start is None else start,
        end=end,
        words=_in_turn(words),
        verdicts=tuple(verdicts),
    )


BEYOND = 1e6
"""Seconds that no turn takes."""
