"""The request of a worked plan: words with slots, such as `{city}`, and words in brackets that may be missing."""

import re
from collections.abc import Iterator, Mapping, Sequence

from kit.core.errors import nearest

SLOT = re.compile(r"\{(\w+)\}")
OPTIONAL = re.compile(r"\[([^\[\]]*)\]")
_WORDS_OF_SLOT = r"[A-Z][\w'&-]{0,99}(?:\s(?:&\s)?[A-Z][\w'&-]{0,99}){0,7}|[\w'-]{1,100}"
"""A slot takes one word, or a name of several words with capitals such as Maple Hill. Without the bounds a long
message would take time that grows as the square of its length."""
_BRACES = re.compile(r"\{[^{}]{0,100}\}|[{}]")
_MEANT_AS_SLOT = re.compile(r"\{\s*\w[\w .-]{0,99}\}")
"""In a task, which may hold JSON: braces around a name, and around nothing else."""
SLOT_RULE = "a slot is a name of letters, digits and _ in braces, as {sample_id}"


def values_in(request: str, message: str) -> Mapping[str, str] | None:
    """Returns what stands in the message for the slots of a request; None where its words are others.

    Case and the last sign do not matter. A slot that stands twice means the same words at both places.
    """
    groups: dict[str, str] = {}
    parts: list[str] = []
    words = " ".join(request.strip(" .?!").split())
    for number, part in enumerate(OPTIONAL.split(words)):
        pattern = _pattern_of_words(part, groups)
        parts.append(f"(?:{pattern})?" if number % 2 else pattern)
    match = re.fullmatch("".join(parts) + r"[\s.?!]*", message.strip())
    if match is None:
        return None
    values: dict[str, str] = {}
    for slot, group in groups.items():
        if match[group]:
            values[slot] = match[group]
    return values


def _pattern_of_words(text: str, groups: dict[str, str]) -> str:
    """Words as a pattern; `groups` keeps by which name each slot is found."""
    parts: list[str] = []
    for number, part in enumerate(SLOT.split(text)):
        if number % 2 == 0:
            words = r"\s+".join(re.escape(word) for word in part.split(" "))
            parts.append(f"(?i:{words})")
        elif part in groups:
            parts.append(f"(?i:(?P={groups[part]}))")
        else:
            # Its own name need not be one that a group of a pattern may have: {1st}.
            groups[part] = f"slot_{len(groups)}"
            parts.append(f"(?P<{groups[part]}>{_WORDS_OF_SLOT})")
    return "".join(parts)


def filled(task: str, values: Mapping[str, str]) -> str:
    """The words of a step with those of the request in its slots."""

    def part(match: re.Match[str]) -> str:
        slots = SLOT.findall(match[1])
        return match[1] if values.keys() >= set(slots) else ""

    return SLOT.sub(lambda slot: values.get(slot[1], slot[0]), OPTIONAL.sub(part, task))


def request_faults(request: str) -> Iterator[str]:
    """What is wrong with a request, each in a sentence with its fix."""
    if _has_odd_bracket(request):
        yield (
            f"brackets of {request!r} do not pair up, or stand in one another; "
            "put between [ and ] what may be missing, and use no other brackets"
        )
    for braces in _BRACES.findall(SLOT.sub("", request)):
        yield f"{braces!r} in {request!r} is no slot; {SLOT_RULE}"
    places: dict[str, int] = {}
    for number, part in enumerate(OPTIONAL.split(request)):
        for slot in SLOT.findall(part):
            first = places.setdefault(slot, number)
            # The parts in brackets have odd numbers.
            if first % 2 and first != number:
                yield (
                    f"{{{slot}}} of {request!r} stands in brackets first, and once more where these may be missing; "
                    "give the second slot a name of its own"
                )


def task_faults(task: str, request: str) -> Iterator[str]:
    """What is wrong with the task of a step of that request, each in a sentence with its fix."""
    if _has_odd_bracket(task) and SLOT.search(task):
        yield f"brackets of the task {task!r} do not pair up, or stand in one another; take them out"
    slots = frozenset(SLOT.findall(request))
    sure_slots = frozenset(SLOT.findall(OPTIONAL.sub("", request)))
    for braces in _MEANT_AS_SLOT.findall(SLOT.sub("", task)):
        yield f"{braces!r} in the task {task!r} is no slot; {SLOT_RULE}"
    for slot in _each_once(SLOT.findall(task)):
        if slot not in slots:
            yield f"the request has no slot {slot!r} for the task {task!r}: {_known(slot, slots)}"
    for slot in _each_once(SLOT.findall(OPTIONAL.sub("", task))):
        if slot in slots - sure_slots:
            yield f"{{{slot}}} may be missing in the request; put it in brackets in the task {task!r} too"


def _has_odd_bracket(text: str) -> bool:
    return not {"[", "]"}.isdisjoint(OPTIONAL.sub("", text))


def _each_once(slots: Sequence[str]) -> Sequence[str]:
    return list(dict.fromkeys(slots))


def _known(slot: str, slots: frozenset[str]) -> str:
    return nearest(slot, slots) if slots else f"write {{{slot}}} in the request, or a word here"
