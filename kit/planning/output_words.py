"""What the steps of a plan came to, in words: for its user, for the model that answers, and for the page Plans."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from kit.core.display.count import enumeration
from kit.core.documents.document import PlanStep

MOST_CHARACTERS = 6_000
"""Characters of one output that are told; of more it is the beginning."""
MOST_ROWS = 30
"""Rows of one list that are told, and how many more there are."""
TITLES = ("name", "title")
"""Fields that name a thing: they come first and without their own name."""
SENTENCES = ("description", "summary", "note")
"""Fields that are sentences, and say without a name what they are."""
Fields = Mapping[str, Any]


def report(steps: Sequence[PlanStep], outputs: Mapping[int, Any]) -> dict[int, str]:
    """Returns step -> its number, what it was to do and what it came to, in markdown; of complete steps alone.

    Of a step that later ones worked on it says how much it gave: what that was stands in their outputs.
    """
    blocks: dict[int, str] = {}
    for step in steps:
        if step.status != "complete":
            continue
        number = step.step_index
        readers = [f"{later.step_index}" for later in steps if number in later.inputs]
        output = outputs.get(number)
        if output is None:
            words = "It is done; its result is gone."
        elif readers:
            noun = "step" if len(readers) == 1 else "steps"
            words = f"{size_of(output)} for {noun} {enumeration(readers)}."
        else:
            words = words_of(output, step.task)
        blocks[number] = f"**{number}. {step.task.rstrip('. ')}:** {words}"
    return blocks


def words_of(value: Any, task: str = "", rows: int = MOST_ROWS) -> str:
    """Returns an output in lines, a row of a list in each; of a long one the beginning, and how much more there is.

    Fields that the task names come first.
    """
    lines = list(_lines(value, task.lower(), rows))
    text: list[str] = []
    room = MOST_CHARACTERS
    for line in lines:
        room -= len(line) + 1
        if room < 0:
            # Said, so that nobody takes the beginning for all of it.
            text.append(f"- and {len(lines) - len(text):,} more lines")
            break
        text.append(line)
    return "\n".join(text)


def size_of(value: Any) -> str:
    """Returns how much an output is, such as `348 outlets`; `done` where it is no list."""
    parts: list[str] = []
    fields = cast("Fields", value) if isinstance(value, Mapping) else {"row": value}
    for name, part in fields.items():
        if isinstance(part, list):
            items = cast("list[Any]", part)
            parts.append(_count(len(items), _noun(_only_field(items), name)))
    return enumeration(parts) or "done"


def _lines(value: Any, task: str, rows: int, name: str = "") -> Iterator[str]:
    if isinstance(value, Mapping):
        yield from _object_lines(cast("Fields", value), task, rows, name)
    elif isinstance(value, list):
        yield from _list_lines(cast("list[Any]", value), task, rows, name or "row")
    else:
        yield _sentence(f"{_plain(name)} {_word(value)}".strip())


def _object_lines(fields: Fields, task: str, rows: int, name: str) -> Iterator[str]:
    """Yields what an object says of itself as one line, and what is inside it on lines of its own."""
    own: dict[str, Any] = {}
    for key, part in fields.items():
        if not isinstance(part, Mapping | list):
            own[key] = part
    if own:
        yield _sentence(f"{_plain(name)} {_row(own, task)}".strip())
    for key, part in fields.items():
        if key not in own:
            yield from _lines(part, task, rows, key)


def _list_lines(items: list[Any], task: str, rows: int, name: str) -> Iterator[str]:
    """Yields a list of single values as one line; of objects their number, what all have, and a line for each."""
    key = _only_field(items)
    if key is not None:
        items = [item[key] for item in items]
    count = _count(len(items), _noun(key, name))
    if not any(isinstance(item, Mapping | list) for item in items):
        words = [_word(item) for item in items[: 10 * rows]]
        if len(items) > len(words):
            words.append(f"and {len(items) - len(words):,} more")
        yield _sentence(f"{count}: {', '.join(words)}" if items else count)
        return
    common = _common_fields(items)
    shared = [_field(key, value) for key, value in common.items()]
    yield f"{count}{', each with ' if shared else ''}{enumeration(shared)}:"
    for item in items[:rows]:
        if isinstance(item, Mapping):
            fields = cast("Fields", item)
            own = {key: part for key, part in fields.items() if key not in common}
            yield f"- {_row(own, task)}"
        else:
            yield f"- {_word(item)}"
    if len(items) > rows:
        yield f"- and {len(items) - rows:,} more"


def _row(fields: Fields, task: str) -> str:
    """Returns an object in a line: its name, its id in brackets, and its fields, those first that the task names."""
    title = ""
    ids: list[str] = []
    parts: list[str] = []
    for key in sorted(fields, key=lambda key: _plain(key.removesuffix("_cents")) not in task):
        value = fields[key]
        if key in TITLES and value:
            title = title or _word(value)
        elif key == "id" or key.endswith("_id"):
            ids.append(_word(value))
        else:
            parts.append(_field(key, value))
    if title and ids:
        title = f"{title} ({', '.join(ids)})"
    head = title or ", ".join(ids)
    return ": ".join(part for part in (head, ", ".join(parts)) if part)


def _common_fields(items: list[Any]) -> Fields:
    """Returns the fields in which all of several rows have the same words."""
    if len(items) < 2 or not all(isinstance(item, Mapping) for item in items):
        return {}
    rows = cast("list[Fields]", items)
    common: dict[str, Any] = {}
    for key, value in rows[0].items():
        is_shared = isinstance(value, str) and all(row.get(key) == value for row in rows)
        if is_shared and key not in TITLES:
            common[key] = value
    return common


def _only_field(items: list[Any]) -> str | None:
    """Returns the one field that each of these objects has; None where they are no such objects."""
    field: str | None = None
    for item in items:
        names = list(cast("Fields", item)) if isinstance(item, Mapping) else []
        if len(names) != 1 or field not in (None, names[0]):
            return None
        field = names[0]
    return field


def _field(key: str, value: Any) -> str:
    if isinstance(value, bool):
        return _plain(key) if value else f"not {_plain(key)}"
    if key.endswith("_cents") and isinstance(value, int):
        return f"{_plain(key.removesuffix('_cents'))} ${value / 100:,.2f}"
    if key in SENTENCES and isinstance(value, str):
        return _word(f"{value[:1].lower()}{value[1:]}")
    if key == "total":
        return f"{_word(value)} in total"
    return f"{_plain(key)} {_word(value)}"


def _plain(name: str) -> str:
    return name.replace("_", " ")


def _word(value: Any) -> str:
    """Returns a value within a sentence; what is nested in a row stands in it without marks."""
    if isinstance(value, str):
        return value.rstrip(". ")
    if isinstance(value, list):
        return ", ".join(_word(item) for item in cast("list[Any]", value)) or "none"
    if isinstance(value, Mapping):
        return _row(cast("Fields", value), "")
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    # A number of four digits may be a year, which has no comma.
    return f"{value:,}" if abs(value) >= 10_000 else f"{value}"


def _noun(field: str | None, name: str) -> str:
    """Returns what rows are called by their only field; ids by what they are the ids of."""
    if field is None or field == "id":
        return name
    return field.removesuffix("_id")


def _count(count: int, name: str) -> str:
    """Returns a number of things with their name in the singular or the plural."""
    noun = _plain(name)
    singular = noun.removesuffix("s")
    if noun.endswith("ies"):
        singular = f"{noun[:-3]}y"
    if count == 1:
        return f"1 {singular}"
    plural = f"{singular[:-1]}ies" if singular.endswith("y") else f"{singular}s"
    return f"{count:,} {plural}" if count else f"no {plural}"


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."
