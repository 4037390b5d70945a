"""Fills the arguments of a call from a request and a JSON schema; what comes out is valid for the schema."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import inf
from typing import Any, cast

from kit.core.language.clauses import clauses
from kit.core.language.words import STOP, words
from kit.models.offline import english
from kit.models.offline.composition import cut, subject
from kit.models.offline.extraction import (
    capitalised,
    date,
    identifiers,
    noun_phrase,
    numbers,
    quoted,
    text_for,
    unquoted,
)
from kit.models.offline.json_schema import Schema, kind_of, properties_of, resolve
from kit.models.offline.number_range import NumberRange
from kit.models.offline.similarity import closeness, spoken

_COUNT = frozenset(
    {
        "limit",
        "count",
        "n",
        "k",
        "top",
        "quantity",
        "size",
        "amount",
        "number",
        "people",
        "guests",
        "party",
    }
)
_NONE = object()
_VERBATIM = re.compile(
    r"\b(?:user|person|customer)'s (?:own |exact )?words\b|\bverbatim\b|\bword for word\b", re.I
)
"""A field that says so takes the request as it is."""
_TITLED = re.compile(r"\btitles?\b", re.I)
"""A field that says so takes names as they are written: a title that is not there must not become its words."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where values come from: the request, and longer text given beside it."""

    request: str
    material: str = ""
    lenient: bool = False
    """Fill optional fields too (structured jobs)."""
    root: Schema = field(default_factory=dict[str, Any])
    about: frozenset[str] = frozenset()
    """Words of the tool's own name, singular: they narrow no search."""
    before: str = ""
    """What the request begins with and was said earlier: it names nothing that the rest names itself."""


def fill(schema: Schema, source: Source) -> dict[str, Any]:
    """Arguments for an object schema: required fields always, optional ones when the text says something about them."""
    schema = resolve(schema, source.root)
    required = cast(Sequence[str], schema.get("required") or ())
    filled: dict[str, Any] = {}
    for name, spec in properties_of(schema).items():
        value = _value(name, resolve(spec, source.root), source, name in required)
        echo = (
            name not in required
            and not source.lenient
            and isinstance(value, str)
            and value in filled.values()
        )
        if value is not _NONE and not echo:
            filled[name] = value
    return filled


def unknown_name(schema: Schema, arguments: Mapping[str, Any], request: str) -> str | None:
    """Returns the name in a request that a required argument has no option for; None where it has one.

    The closest option would answer a question about something else.
    """
    names = quoted(request) + capitalised(request)
    required = cast(Sequence[str], schema.get("required") or ())
    # Optional arguments do not count: a brand or a query takes up any name that is left.
    taken = [arguments.get(field_name) for field_name in required]
    for field_name in required:
        spec = resolve(properties_of(schema).get(field_name) or {}, schema)
        options = [str(option) for option in spec.get("enum") or ()]
        if not options or not all(option[:1].isupper() for option in options):
            continue  # options such as "pending" name no thing that a request could name otherwise
        if max(rank_options(options, Source(request))) >= 1:
            continue
        for name in names:
            if name not in taken:
                return name
    return None


def _value(name: str, spec: Schema, source: Source, required: bool) -> Any:
    required = required or source.lenient
    if "const" in spec:
        return spec["const"]
    if spec.get("enum"):
        return _enum(name, spec, source, required)
    match kind_of(spec):
        case "string":
            return _string(name, spec, source, required)
        case "integer" | "number":
            return _number(name, spec, source, required)
        case "boolean":
            return _boolean(name, spec, source, required)
        case "array":
            return _array(name, spec, source, required)
        case "object":
            if required:
                return fill(spec, source)
            return _NONE
        case _:
            if required:
                return None
            return _NONE


def _enum(name: str, spec: Schema, source: Source, required: bool) -> Any:
    options = list(spec["enum"])
    ranks = rank_options([str(option) for option in options], source)
    best = max(range(len(options)), key=lambda i: ranks[i])
    if ranks[best] >= (0.12 if required else 0.5):
        return options[best]
    if "default" in spec and spec["default"] in options:
        if required:
            return spec["default"]
        return _NONE
    other = next(
        (
            option
            for option in options
            if str(option).lower() in ("other", "none", "general", "unknown")
        ),
        options[best],
    )
    if required:
        return other
    return _NONE


def rank_options(options: Sequence[str], source: Source) -> list[float]:
    """How well each option fits the request: 1 and more when it is named, else closeness in meaning."""
    text = f" {' '.join(words(source.request))} "
    descriptions = [_describe_option(option, source.material) for option in options]
    ranks = closeness(source.request, descriptions)
    numbers: list[float] = []
    for rank, option in zip(ranks, options, strict=True):
        numbers.append(rank + (1.0 if f" {' '.join(words(spoken(option)))} " in text else 0.0))
    return numbers


def _describe_option(option: str, material: str) -> str:
    """An option and the line of the material that explains it, if one does."""
    line = re.search(
        rf"^\W*{re.escape(option)}\W*\s*[:=–-]\s*(.+)$", material[:20_000], re.M | re.I
    )
    if line:
        return f"{spoken(option)} {line[1][:300]}"
    return spoken(option)


def _string(name: str, spec: Schema, source: Source, required: bool) -> Any:
    if spec.get("format") in ("date", "date-time"):
        day = date(f"{source.request} {source.material[:4000]}")
        if day or required:
            text = (day or "1970-01-01") + ("T00:00:00Z" if spec["format"] == "date-time" else "")
        else:
            text = None
    elif required and _VERBATIM.search(str(spec.get("description") or "")):
        text = source.request.strip()[:2000]
    else:
        ask = partial(
            text_for,
            name,
            material=source.material,
            required=required,
            job=source.lenient,
            about=source.about,
        )
        text = (required and ask(_named_anew(source))) or ask(source.request)
        if text is not None and _TITLED.search(str(spec.get("description") or "")):
            names = [name for name in capitalised(source.request) if f'"{name}"' not in text]
            text = " ".join([text, *(f'"{name}"' for name in names)])
    if text is None:
        if "default" in spec and isinstance(spec["default"], str) and required:
            return spec["default"]
        if not required:
            return _NONE
        text = subject(source.request) or source.request.strip() or spoken(name)
    return _within(text, spec, source)


def _named_anew(source: Source) -> str:
    """What is asked now, where it names a thing without pointing back; else the whole request."""
    now = source.request.removeprefix(source.before)
    if noun_phrase(now, source.about) and not english.REFERENCE.search(now):
        return now
    return source.request


def _within(text: str, spec: Schema, source: Source) -> str:
    least = int(spec.get("minLength") or 0)
    most = spec.get("maxLength")
    if pattern := spec.get("pattern"):
        return _matching(str(pattern), text, source)
    if isinstance(most, int) and len(text) > most:
        text = cut(text, most)
    if len(text) < least:
        return text.ljust(least, ".")
    return text


def _matching(pattern: str, text: str, source: Source) -> str:
    for candidate in (text, source.request, source.material[:4000]):
        try:
            match = re.search(pattern.removeprefix("^").removesuffix("$"), candidate)
        except re.error:
            return text
        if match and re.search(pattern, match[0]):
            return match[0]
    return text


def _number(name: str, spec: Schema, source: Source, required: bool) -> Any:
    allowed = NumberRange.of(spec)
    values: list[float] = []
    for value in numbers(unquoted(source.request[:4000])):
        if allowed.holds(value):
            values.append(value)
    fits = bool(set(spoken(name).split()) & _COUNT) or _near(name, source.request)
    if values and (required or fits):
        return allowed.fit(values[0])
    if "default" in spec and isinstance(spec["default"], int | float):
        if required:
            return spec["default"]
        return _NONE
    if required:
        return allowed.middle()
    return _NONE


def _near(name: str, request: str) -> bool:
    name_words: list[str] = []
    for word in spoken(name).split():
        if word not in STOP:
            name_words.append(word)
    for word in name_words:
        if word.rstrip("s") in {w.rstrip("s") for w in words(request)}:
            return True
    return False


def _boolean(name: str, spec: Schema, source: Source, required: bool) -> Any:
    if _near(name, source.request):
        return not re.search(r"\b(?:no|not|without|don't|never)\b", source.request, re.I)
    if not required:
        return _NONE
    if isinstance(spec.get("default"), bool):
        return spec["default"]
    return False


def _array(name: str, spec: Schema, source: Source, required: bool) -> Any:
    least = int(spec.get("minItems") or 0)
    most = int(spec.get("maxItems") or 8)
    items = resolve(cast(Schema, spec.get("items") or {"type": "string"}), source.root)
    values = _candidates(name, items, source, max(1, most))
    if not values and not required and not least:
        return _NONE
    return _fit_length(values, items, least, most, name, source)


def _candidates(name: str, items: Schema, source: Source, most: int) -> list[Any]:
    if options := items.get("enum"):
        ranks = rank_options([str(option) for option in options], source)
        top = max(ranks)
        return [
            option
            for option, rank in zip(options, ranks, strict=True)
            if rank >= max(0.2, top - 0.1)
        ][:most]
    pieces = [clause.text for clause in clauses(source.request) if clause.content] or [
        source.request
    ]
    match kind_of(items):
        case "object" if source.lenient:
            each: list[Source] = []
            for piece in pieces:
                each.append(Source(piece, source.material, True, source.root))
            return [fill(items, one) for one in each][:most]
        case "string":
            naming = bool({"id", "ids"} & set(spoken(name).split()))
            if naming:
                texts = identifiers(source.request)
            else:
                texts = quoted(source.request) or [
                    noun_phrase(p, source.about) or p for p in pieces
                ]
            return [_within(text, items, source) for text in dict.fromkeys(texts) if text][:most]
        case "integer" | "number":
            allowed = NumberRange.of(items)
            return [
                allowed.fit(value) for value in numbers(source.request) if allowed.holds(value)
            ][:most]
        case _:
            return []


def _fit_length(
    values: list[Any], items: Schema, least: int, most: int, name: str, source: Source
) -> list[Any]:
    unique: list[Any] = []
    for value in values:
        if value not in unique:
            unique.append(value)
    spare = list(items.get("enum") or ())
    while len(unique) < least:
        extra = next((option for option in spare if option not in unique), _NONE)
        unique.append(extra if extra is not _NONE else _another(items, len(unique), name, source))
    return unique[:most]


def _another(items: Schema, n: int, name: str, source: Source) -> Any:
    """One more item, different from the ones before it where the type allows."""
    match kind_of(items):
        case "string" if not items.get("enum"):
            return _within(f"{n + 1} {spoken(name)}", items, source)
        case "integer" | "number":
            allowed = NumberRange.of(items)
            if allowed.low != -inf:
                start = allowed.low
            else:
                start = min(0.0, allowed.high - n)
            return allowed.fit(min(start + n, allowed.high))
        case "boolean":
            return n % 2 == 0
        case _:
            return _value(name, items, source, True)
