"""Chains skills by their schemas: what a text gives one to call it with, what one gives another,
what a text asks of its output.

It is a template over words and schemas, for the offline stand-in; it understands neither.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from kit.core.language.words import words
from kit.models.offline import english
from kit.models.offline.extraction import SEARCHING, quoted, text_for
from kit.models.offline.json_schema import Schema, inlined, kind_of, properties_of
from kit.models.offline.similarity import spoken

_COUNTS = frozenset({"limit", "count", "top", "size"})
_POINTERS = frozenset(["their", "its", "each", "every", "all", "them", "they", "both"])
_NUMBER = re.compile(rf"(?<![\w.-])(\d{{1,4}}|{'|'.join(english.NUMBERS)})\s+([a-z]+)", re.I)
SCHEMAS = ("input_schema", "output_schema")
"""The fields of a manifest that hold schemas."""
_TIME = re.compile(r"\b(?:in|over|for|during)\s+the\s+(?:last|past)\s+\w+\s+\w+", re.I)


@dataclass(frozen=True)
class Skill:
    """What a manifest says, as far as it is read here."""

    name: str
    description: str
    capabilities: tuple[str, ...]
    input: Schema
    output: Schema
    acts: bool
    """Whether calling it twice does more than calling it once."""

    @property
    def words(self) -> str:
        return f"{self.description} {'. '.join(self.capabilities)}. {_options(self)}."

    @property
    def required(self) -> tuple[str, ...]:
        """The arguments that it cannot do without."""
        names: list[str] = []
        for name in self.input.get("required") or ():
            if name in properties_of(self.input):
                names.append(name)
        return tuple(names)

    @property
    def limit(self) -> str | None:
        """The argument that says how many rows it gives."""
        for name in properties_of(self.input):
            if name in _COUNTS:
                return name
        return None


def skill_of(manifest: Mapping[str, Any]) -> Skill:
    """Reads a manifest. Raises KeyError for one without its parts."""
    capabilities = tuple(map(str, manifest["capabilities"]))
    takes, gives = (inlined(manifest[name]) for name in SCHEMAS)
    return Skill(
        manifest["id"],
        str(manifest["description"]),
        capabilities,
        takes,
        gives,
        not manifest.get("idempotent"),
    )


def calls_for(text: str, skill: Skill, others: Iterable[Skill]) -> bool:
    """Whether a skill may be thought of: one that acts only where the text has a word of its name
    that no other name has."""
    shared: set[str] = set()
    for one in others:
        if one is not skill:
            for word in spoken(one.name).split():
                shared.add(word)
    own = {*spoken(skill.name).split()} - shared
    return not skill.acts or not own.isdisjoint(map(_singular, words(text)))


def vocabulary(skills: Iterable[Skill]) -> frozenset[str]:
    """The words with which skills describe themselves: nobody searches by them."""
    texts: set[str] = set()
    for skill in skills:
        for word in words(f"{spoken(skill.name)} {skill.words}"):
            texts.add(_singular(word))
    return frozenset(texts)


def values_in(text: str, skill: Skill, own: Collection[str] = ()) -> dict[str, Any]:
    """The arguments of a skill that a text names; how many rows it asks for is not among them.
    `own`: words of the skills."""
    numbers: dict[str, int] = {}
    for figure, unit in _NUMBER.findall(text):
        numbers[_singular(unit)] = _number(figure)
    values: dict[str, Any] = {}
    for name, spec in properties_of(skill.input).items():
        value = _value(name, spec, text, numbers, own)
        if value not in (None, [], ""):
            values[name] = value
    return values


def count_in(text: str, noun: str = "") -> int | None:
    """How many things a text asks for: the first number that counts no unit of time, or that counts
    the noun; 2 for both."""
    figures: list[tuple[Any, Any]] = []
    for figure, unit in _NUMBER.findall(text):
        if unit.lower() not in english.FAINT:
            figures.append((figure, unit))
    if noun:
        figures = re.findall(
            rf"{_NUMBER.pattern}(?:\s+\w+){{0,2}}?\s+{re.escape(noun)}s?\b", text, re.I
        )
    return next((_number(figure) for figure, _ in figures), 2 if "both" in words(text) else None)


def supplies(skill: Skill, name: str, spec: Schema) -> str | None:
    """The place in a skill's output, such as `rows[].id`, of what an argument of another takes: an
    id of the same form."""
    pattern = _pattern(spec)
    label = name.removesuffix("s")
    for field, part in properties_of(skill.output).items():
        rows = _rows(part)
        if rows is None or not _promises(skill.output, field):
            continue
        for inner, value in properties_of(rows).items():
            is_named = label in (inner, f"{_singular(field)}_{inner}")
            if _promises(rows, inner) and (is_named or (pattern and _pattern(value) == pattern)):
                return f"{field}[].{inner}"
    return None


def projection(skill: Skill, text: str) -> dict[str, str]:
    """The shape of the fields of a skill's output that a text mentions, with what names its rows;
    all where it mentions none."""
    shape: dict[str, str] = {}
    for field, part in properties_of(skill.output).items():
        if not _promises(skill.output, field):
            continue
        if (rows := _rows(part)) is not None:
            fields: dict[Any, Mapping[str, Any] | dict[str, Any]] = {}
            for name in rows.get("required") or ():
                fields[name] = properties_of(rows).get(name) or {}
            shape[field] = rows_shape(
                {name: fields[name] for name in _mentioned(fields, text, skill)}
            )
        elif kind_of(part) != "array" and (kind_of(part) != "integer" or skill.limit):
            shape[field] = _type(part)
    return shape


def shape_at(skill: Skill, place: str) -> dict[str, str]:
    """The shape of what stands at a place such as `rows[].id`, and of nothing else."""
    field, _, inner = place.partition("[].")
    rows = _rows(properties_of(skill.output)[field]) or {}
    return {field: rows_shape({inner: properties_of(rows)[inner]})}


def rows_shape(fields: Mapping[str, Schema]) -> str:
    """An array of objects with these fields, in the notation of shapes."""
    if fields:
        return f"array<{{{', '.join(f'{name}: {_type(spec)}' for name, spec in fields.items())}}}>"
    return "array"


def _value(
    name: str, spec: Schema, text: str, numbers: Mapping[str, int], own: Collection[str]
) -> Any:
    if options := spec.get("enum"):
        spoken_words = {_singular(word) for word in words(text)}
        for option in options:
            if isinstance(option, str) and _singular(option.lower()) in spoken_words:
                return option
        return None
    if kind_of(spec) == "array" or _pattern(spec):
        if _pattern(spec):
            ids = re.findall(_pattern(spec).removeprefix("^").removesuffix("$"), text)
        else:
            ids = []
        if kind_of(spec) == "array":
            return ids
        return next(iter(ids), None)
    match kind_of(spec):
        case "integer":
            return numbers.get(_singular(name))
        case "string":
            return _phrase(name, text, own)
        case _:
            return None


def _phrase(name: str, text: str, own: Collection[str]) -> str | None:
    """A name, such as a city's; or the words to search by: no name, no id, and none of the skills' own."""
    text = _TIME.sub(" ", text).strip()
    phrase = text_for(name, text, "", required=False, job=False)
    if phrase is None or phrase[0].isupper() or phrase == text or phrase in quoted(text):
        return phrase
    if SEARCHING.isdisjoint(spoken(name).split()):
        return None
    names = {word.lower() for word in re.findall(r"(?<!^)\b[A-Z]\w+", text)}
    rest: list[str] = []
    for word in phrase.split():
        if _singular(word) not in own and word not in names | _POINTERS:
            rest.append(word)
    rest = [word for word in rest if not re.search(rf"\b{re.escape(word)}-\d", text)]
    return " ".join(rest) or None


def _options(skill: Skill) -> str:
    parts = properties_of(skill.input).items()
    return " ".join(
        f"{spoken(name)} {' '.join(map(str, spec.get('enum') or ()))}" for name, spec in parts
    )


def _pattern(spec: Schema) -> str:
    """The form of an argument, or of the items of a list; empty where any will do."""
    items: Any = spec.get("items") if kind_of(spec) == "array" else spec
    if isinstance(items, Mapping):
        return str(cast("Schema", items).get("pattern") or "")
    return ""


def _mentioned(fields: Mapping[str, Schema], text: str, skill: Skill) -> Iterator[str]:
    """The fields that a text asks for. Ids are nothing to say, and a word that tells the skill what
    to do mentions no field."""
    spoken_words = set(words(text))
    verbs: set[str] = set()
    for line in skill.capabilities:
        if words(line):
            verbs.add(words(line)[0])
    whole = {_singular(word) for word in spoken_words}
    labels: dict[str, set[str]] = {}
    for name in fields:
        labels[name] = set(spoken(name).split())
    hits: set[str] = set()
    for name, label in labels.items():
        if label & whole and "id" not in label and not label & verbs:
            hits.add(name)
    kinds = bool(hits) and all(
        fields[name].get("enum") and not labels[name] & spoken_words for name in hits
    )
    for name, label in labels.items():
        if not hits or name in hits or (not kinds and ("name" in label or label & verbs & whole)):
            yield name


def _rows(part: Schema) -> Schema | None:
    items: Any = part.get("items")
    if part.get("type") == "array" and isinstance(items, Mapping) and "properties" in items:
        return cast("Schema", items)
    return None


def _promises(schema: Schema, field: str) -> bool:
    return field in (schema.get("required") or ())


def _type(spec: Schema) -> str:
    """A scalar in the notation of shapes; whatever may be null, or is anything else, is `any`."""
    if spec.get("enum") and "type" not in spec:
        if all(isinstance(option, str) for option in spec["enum"]):
            return "string"
        return "any"
    kind = spec.get("type")
    if isinstance(kind, str) and kind in ("string", "integer", "number", "boolean"):
        return kind
    return "any"


def _singular(word: str) -> str:
    word = word.lower().removesuffix("_ids").removesuffix("_id")
    if word.endswith("ies"):
        return f"{word[:-3]}y"
    return word.removesuffix("s")


def _number(figure: str) -> int:
    if figure.isdigit():
        return int(figure)
    return int(english.NUMBERS[figure.lower()])
