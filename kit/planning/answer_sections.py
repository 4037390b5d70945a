"""What a plan came to, as sections of an answer: what was chosen, and by the name of each thing what is known of it."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kit.compose.locale import Sentences
from kit.core.documents.document import PlanStep
from kit.core.schema.json_value import is_list, is_object
from kit.planning.output_words import (
    RANK,
    TITLES,
    TOTAL,
    Fields,
    Outputs,
    Wording,
    count_words,
    is_empty,
    is_id,
    names_of,
    row_words,
    size_of,
    title_of,
    wordings,
    words_of,
)


@dataclass(frozen=True)
class Section:
    """A part of the answer."""

    text: str
    """In markdown."""
    findings: Mapping[int, str]
    """Steps whose outputs it tells, and the words of each in it."""


def sections_of(
    steps: Sequence[PlanStep], outputs: Outputs, request: str, sentences: Sentences
) -> list[Section]:
    """Returns the sections of the answer to a request from the complete steps of its plan.

    A step that chose things for later ones is told first: of how many it chose, and by what. What the
    later ones say of such a thing stands under its name, with the figures that it was chosen by. A
    list of ids that only served another step is told as the number of things that one chose from.
    """
    return list(_Answer(steps, outputs, request, sentences).sections())


class _Answer:
    def __init__(
        self, steps: Sequence[PlanStep], outputs: Outputs, request: str, sentences: Sentences
    ):
        self._steps = {step.step_index: step for step in steps if step.status == "complete"}
        self._outputs = outputs
        self._sentences = sentences
        self._wordings = wordings(steps, outputs, request, sentences)
        counts = Counter(names_of(outputs).values())
        # Of two things with one name nobody could say which of them a section is about.
        self._names = {name for name, count in counts.items() if count == 1}
        readers: dict[int, list[int]] = {}
        for step in steps:
            for number in step.inputs:
                readers.setdefault(number, []).append(step.step_index)
        self._pools: set[int] = set()
        self._choices: dict[int, list[Fields]] = {}
        self._subjects: dict[int, str] = {}
        for number in self._steps:
            output = outputs.get(number)
            rows = _rows(output)
            if number in readers and rows and all(title_of(row) for row in rows):
                self._choices[number] = rows
            elif number in readers and size_of(output):
                self._pools.add(number)
            else:
                self._subjects[number] = self._subject(output)

    def sections(self) -> Iterator[Section]:
        names_above: set[str] = set()
        for number in self._steps:
            subject = self._subjects.get(number, "")
            if number in self._pools or (subject and subject in names_above):
                continue
            names_above.add(subject)
            if number in self._choices and self._is_told_by_name(number):
                yield Section(self._lead(number), {number: ""})
            elif subject:
                yield self._by_name(subject)
            else:
                yield self._alone(number)

    def _is_told_by_name(self, number: int) -> bool:
        """Whether each thing that a step chose has a section of its own."""
        subjects = self._subjects.values()
        return all(title_of(row) in subjects for row in self._choices[number])

    def _by_name(self, subject: str) -> Section:
        """Returns all that steps say of one thing, under its name and the figures that it was chosen by."""
        findings: dict[int, str] = {}
        for number, other in self._subjects.items():
            if other == subject:
                findings[number] = self._words(number, self._outputs[number], subject)
        heading = f"**{subject}**"
        for number, rows in self._choices.items():
            for row in rows:
                if title_of(row) == subject and self._is_told_by_name(number):
                    heading = self._heading(row, self._wordings[number])
        return Section("\n\n".join([heading, *findings.values()]), findings)

    def _heading(self, row: Fields, wording: Wording) -> str:
        title = title_of(row)
        figures = row_words(_without_title(row, wording), wording)
        place = f"{row[RANK]}. " if RANK in row else ""
        return f"**{place}{title}:** {figures}" if figures else f"**{place}{title}**"

    def _alone(self, number: int) -> Section:
        """Returns what one step came to, under what it was to do where others are told too."""
        words = self._words(number, self._outputs.get(number))
        task = self._steps[number].task.rstrip(". ")
        text = words
        if self._pool(number):
            text = f"{self._lead(number)}\n\n{words}"
        elif len(self._subjects) + len(self._choices) > 1:
            text = f"**{task}:** {words}"
        return Section(text, {number: words})

    def _words(self, number: int, output: Any, subject: str = "") -> str:
        """Returns what a step came to; without the name of the thing that stands above it."""
        if output is None:
            return self._sentences.plan_gone
        wording = self._wordings[number]
        words = words_of(_without(output, subject, wording) if subject else output, wording)
        if is_empty(output):
            # Of what there was nothing stands in the task alone.
            return f"{self._steps[number].task.rstrip('. ')}: {words[:1].lower()}{words[1:]}"
        return words

    def _lead(self, number: int) -> str:
        task = self._steps[number].task.rstrip(". ")
        # An id or an acronym keeps its letters.
        if task[1:2].islower():
            task = f"{task[:1].lower()}{task[1:]}"
        pool = self._pool(number)
        if pool:
            return self._sentences.plan_out_of.format(pool=pool, task=task)
        return f"{self._steps[number].task.rstrip('. ')}:"

    def _pool(self, number: int) -> str:
        """Returns how many things a step chose from, as it says or was given them; empty where they were no more
        than one, or where it chose nothing."""
        for step in self._steps[number].inputs:
            output = self._outputs.get(step)
            if step in self._pools and len(_items(output)) > 1:
                return size_of(output, self._sentences)
        rows = self._choices.get(number, [])
        output = self._outputs.get(number)
        total = output.get(TOTAL) if is_object(output) else None
        if rows and isinstance(total, int) and total > len(rows):
            ids = [key for key in rows[0] if key.endswith("_id")]
            noun = ids[0].removesuffix("_id") if ids else "things"
            return count_words(total, noun, self._sentences)
        return ""

    def _subject(self, output: Any) -> str:
        """Returns the name of the one thing that an output is about; empty where that cannot be told."""
        if not is_object(output):
            return ""
        for part in output.values():
            if is_object(part):
                part = title_of(part)
            if isinstance(part, str) and part in self._names:
                return part
        return ""


def _items(output: Any) -> list[Any]:
    """Returns the first list of an output."""
    parts = output.values() if is_object(output) else [output]
    for part in parts:
        if is_list(part):
            return part
    return []


def _rows(output: Any) -> list[Fields]:
    return [item for item in _items(output) if is_object(item)]


def _without(output: Any, subject: str, wording: Wording) -> dict[str, Any]:
    """Returns an output without the name of the thing that it is about, which stands above it."""
    fields: dict[str, Any] = {}
    for key, part in output.items():
        if is_object(part) and title_of(part) == subject:
            fields |= _without_title(part, wording)
        elif part != subject:
            fields[key] = part
    return fields


def _without_title(fields: Fields, wording: Wording) -> dict[str, Any]:
    own: dict[str, Any] = {}
    for key, part in fields.items():
        if key not in TITLES and (wording.with_ids or not is_id(key)):
            own[key] = part
    return own
