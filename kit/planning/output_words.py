"""What the steps of a plan came to, in words: for its user, for the model that answers, and for the page Plans."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kit.compose.locale import ENGLISH, Sentences
from kit.core.display.count import enumeration
from kit.core.schema.json_value import is_list, is_object

MOST_CHARACTERS = 6_000
"""Characters of one output that are told; of more it is the beginning."""
MOST_ROWS = 30
"""Rows of one list that are told, and how many more there are."""
TITLES = ("name", "title")
"""Fields that name a thing: they come first and without their own name."""
SENTENCES = ("description", "summary", "note")
"""Fields that are sentences, and say without a name what they are."""
RANK = "rank"
"""The field that says a row's place: it numbers the row."""
TOTAL = "total"
"""The field that says of how many things a list is a part."""
Fields = Mapping[str, Any]


@dataclass(frozen=True)
class Wording:
    """How an output is put in words."""

    sentences: Sentences = ENGLISH.sentences
    with_ids: bool = False
    """Whether ids were asked for; else a thing with a name is told without its id."""
    rows: int = MOST_ROWS


def title_of(fields: Fields) -> str:
    """Returns the name of a thing; empty where it has none."""
    for key in TITLES:
        if fields.get(key):
            return _word(fields[key], ENGLISH.sentences)
    return ""


def is_id(key: str) -> bool:
    """Whether a field holds the id of a thing."""
    return key == "id" or key.endswith("_id")


def words_of(value: Any, wording: Wording) -> str:
    """Returns an output in lines, a row of a list in each; of a long one the beginning, and how much more there is."""
    lines = list(_lines(value, wording))
    text: list[str] = []
    room = MOST_CHARACTERS
    for line in lines:
        room -= len(line) + 1
        if room < 0:
            # Said, so that nobody takes the beginning for all of it.
            text.append(f"- {_more(len(lines) - len(text), wording.sentences)}")
            break
        text.append(line)
    return "\n".join(text)


def size_of(value: Any, sentences: Sentences = ENGLISH.sentences) -> str:
    """Returns how much an output is, such as `348 outlets`; empty where it is no list."""
    parts: list[str] = []
    fields = value if is_object(value) else {"row": value}
    for name, part in fields.items():
        if is_list(part):
            items = part
            parts.append(count_words(len(items), _noun(_only_field(items), name), sentences))
    return enumeration(parts, sentences.and_)


def is_ids(value: Any) -> bool:
    """Whether a value is a list of ids, and nothing else."""
    if not is_object(value) or len(value) != 1:
        return False
    (rows,) = value.values()
    if not is_list(rows) or not rows:
        return False
    return all(is_object(row) and len(row) == 1 and is_id(*row) for row in rows)


def is_empty(value: Any) -> bool:
    """Whether a step came back with nothing: lists without a row, or no value at all.

    A flag beside them says nothing, but a flag alone is an answer.
    """
    if not is_object(value):
        return value in (None, "", [])
    parts = [part for part in value.values() if not isinstance(part, bool)]
    lists = [part for part in parts if is_list(part)]
    if lists:
        return not any(lists)
    return bool(parts) and all(is_empty(part) for part in parts)


def _lines(value: Any, wording: Wording, name: str = "") -> Iterator[str]:
    if is_object(value):
        yield from _object_lines(value, wording, name)
    elif is_list(value):
        yield from _list_lines(value, wording, name or "row")
    else:
        yield _sentence(f"{_plain(name)} {_word(value, wording.sentences)}".strip())


def _object_lines(fields: Fields, wording: Wording, name: str) -> Iterator[str]:
    """Yields what an object says of itself as one line, and what is inside it on lines of its own."""
    own: dict[str, Any] = {}
    lists: list[str] = []
    for key, part in fields.items():
        if is_list(part):
            lists.append(key)
        elif not is_object(part):
            own[key] = part
    total = None
    if len(lists) == 1 and isinstance(own.get(TOTAL), int):
        # It is told with the rows that it counts.
        total = own.pop(TOTAL)
    if own:
        row = row_words(own, wording)
        # A thing that has a name needs no word for what it is.
        yield _sentence(row if title_of(own) else f"{_plain(name)} {row}".strip())
    for key, part in fields.items():
        if is_list(part):
            yield from _list_lines(part, wording, key, total)
        elif is_object(part):
            yield from _object_lines(part, wording, key)


def _list_lines(
    items: list[Any], wording: Wording, name: str, total: int | None = None
) -> Iterator[str]:
    """Yields a list of single values as one line; of objects their number, what all have, and a line for each.

    `total`: of how many the list is a part.
    """
    sentences = wording.sentences
    key = _only_field(items)
    if key is not None:
        items = [item[key] for item in items]
    if not any(isinstance(item, Mapping | list) for item in items):
        count = _count_of(items, total, _noun(key, name), sentences)
        words = [_word(item, sentences) for item in items[: 10 * wording.rows]]
        if len(items) > len(words):
            words.append(_more(len(items) - len(words), sentences))
        yield _sentence(f"{count}: {', '.join(words)}" if items else count)
        return
    count = _count_of(items, total, name, sentences)
    common = _common_fields(items)
    if common:
        fields = [_field(key, value, sentences) for key, value in common.items()]
        features = enumeration(fields, sentences.and_)
        count = sentences.plan_each.format(things=count, features=features)
    yield f"{count}:"
    titles = [title_of(item) for item in items if is_object(item)]
    for item in items[: wording.rows]:
        if not is_object(item):
            yield f"- {_word(item, sentences)}"
            continue
        # Two things of one name are told apart by their ids.
        is_shared = titles.count(title_of(item)) > 1
        own = {key: value for key, value in item.items() if key not in common}
        row = row_words(own, replace(wording, with_ids=wording.with_ids or is_shared))
        yield f"{_bullet(item)} {row}"
    if len(items) > wording.rows:
        yield f"- {_more(len(items) - wording.rows, sentences)}"


def _bullet(fields: Fields) -> str:
    place = fields.get(RANK)
    return f"{place}." if isinstance(place, int) else "-"


def row_words(fields: Fields, wording: Wording) -> str:
    """Returns an object in a line: its name and its fields. The id of what has a name is left out, unless ids are
    asked for."""
    title = title_of(fields)
    ids: list[str] = []
    parts: list[str] = []
    for key, value in fields.items():
        is_title = key in TITLES and bool(value)
        if is_id(key):
            if wording.with_ids or not title:
                ids.append(_word(value, wording.sentences))
        elif not is_title and key != RANK:
            parts.append(_field(key, value, wording.sentences))
    if title and ids:
        title = f"{title} ({', '.join(ids)})"
    head = title or ", ".join(ids)
    return ": ".join(part for part in (head, ", ".join(parts)) if part)


def _common_fields(items: list[Any]) -> dict[str, str]:
    """Returns the fields in which all of several things have the same words; none where one has no name."""
    if len(items) < 2 or not all(is_object(item) and title_of(item) for item in items):
        return {}
    common: dict[str, str] = {}
    for key, value in items[0].items():
        is_same = isinstance(value, str) and all(item.get(key) == value for item in items)
        if is_same and key not in TITLES and not is_id(key):
            common[key] = value
    return common


def _only_field(items: list[Any]) -> str | None:
    """Returns the one field that each of these objects has; None where they are no such objects."""
    only: str | None = None
    for item in items:
        names = list(item) if is_object(item) else []
        if len(names) != 1 or only not in (None, names[0]):
            return None
        only = names[0]
    return only


def _field(key: str, value: Any, sentences: Sentences) -> str:
    name = _bare(key)
    if isinstance(value, bool):
        return name if value else sentences.plan_not.format(field=name)
    if key.endswith("_cents") and isinstance(value, int):
        return f"{name} ${value / 100:,.2f}"
    word = _word(value, sentences)
    if key in SENTENCES and isinstance(value, str):
        return f"{word[:1].lower()}{word[1:]}"
    if key == TOTAL:
        return sentences.plan_total.format(count=word)
    if isinstance(value, int) and name.endswith("s"):
        return f"{value:,} {name}"
    return f"{name} {word}"


def _bare(key: str) -> str:
    return _plain(key.removesuffix("_cents"))


def _plain(name: str) -> str:
    return name.replace("_", " ")


def _word(value: Any, sentences: Sentences) -> str:
    """Returns a value within a sentence; what is nested in a row stands in it without marks."""
    if isinstance(value, str):
        return value.rstrip(". ")
    if is_list(value):
        words = [_word(item, sentences) for item in value]
        return ", ".join(words) or sentences.plan_none
    if is_object(value):
        return row_words(value, Wording(sentences=sentences))
    if value is None:
        return sentences.plan_none
    if isinstance(value, bool):
        return sentences.plan_yes if value else sentences.plan_no
    # A number of four digits may be a year, which has no comma.
    return f"{value:,}" if abs(value) >= 10_000 else f"{value}"


def _more(count: int, sentences: Sentences) -> str:
    return f"{sentences.and_} {sentences.more_names.format(count=f'{count:,}')}"


def _noun(key: str | None, name: str) -> str:
    """Returns what rows are called by their only field; ids by what they are the ids of."""
    if key is None or key == "id":
        return name
    return key.removesuffix("_id")


def _count_of(items: Sequence[Any], total: int | None, name: str, sentences: Sentences) -> str:
    """Returns how many rows a list has, and of how many they are the first."""
    if total is None or total <= len(items):
        return count_words(len(items), name, sentences)
    words = count_words(total, name, sentences)
    return sentences.plan_part.format(count=f"{len(items):,}", things=words)


def count_words(count: int, name: str, sentences: Sentences) -> str:
    """Returns a number of things with their name in the singular or the plural."""
    noun = _plain(name)
    if noun.endswith("ed") and not noun.endswith("eed") and count:
        # "Moved", "booked": a list that is named by what was done to its rows.
        return f"{count:,} {noun}"
    singular = noun.removesuffix("s")
    if noun.endswith("ies"):
        singular = f"{noun[:-3]}y"
    if count == 1:
        return f"1 {singular}"
    plural = f"{singular[:-1]}ies" if singular.endswith("y") else f"{singular}s"
    if not count:
        return sentences.plan_empty.format(things=plural)
    return f"{count:,} {plural}"


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."
