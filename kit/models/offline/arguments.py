"""Fills the arguments of a call from a request and a JSON schema; what comes out is valid for the schema."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from kit.core.language.clauses import clauses
from kit.core.language.words import STOP, spoken, word_set, words
from kit.models.offline import english, projection
from kit.models.offline.composition import cut
from kit.models.offline.conversation import Tool
from kit.models.offline.extraction import (
    HOW_MANY_ROWS,
    SEARCHING,
    Source,
    capitalised,
    countable,
    date,
    identifiers,
    names_a_thing,
    noun_phrase,
    number_beside,
    numbers,
    quoted,
    text_for,
)
from kit.models.offline.json_schema import Schema, kind_of, plain, properties_of
from kit.models.offline.phrases import Phrases
from kit.models.offline.similarity import closeness

_COUNT = HOW_MANY_ROWS | word_set("quantity size amount number people guests party")
"""Names of an argument that takes any number of the request."""
_WEEKDAYS = word_set("monday tuesday wednesday thursday friday saturday sunday")
_VERBATIM = re.compile(
    r"\b(?:user|person|customer)'s (?:own |exact )?words\b|\bverbatim\b|\bword for word\b", re.I
)
"""A field that says so takes the request as it is."""
_TITLED = re.compile(r"\btitles?\b", re.I)
"""A field that says so takes names as they are written: a title that is not there must not become its words."""
_POSITION = re.compile(r"\bnumber (\d+)\b")
_NEXT_THING = re.compile(r"(?:,|(?<!\s)\s+(?:and|or|then))(?=\s)", re.I)
"""Where a request may go on with another thing of the same kind: "ou-0001, ou-0002 and ou-0003"."""
MOST_THINGS = 5
"""Things of one kind that a request is answered for: a call each."""
RANK_OF_NAMED = 1.0
"""The rank of an option that a request names."""
RANK_OF_CLOSE = 0.5
"""The rank that an option needs where the field may stay empty."""


def fill(schema: Schema, source: Source) -> dict[str, Any]:
    """Arguments for an object schema: required fields always, optional ones when the text says something about them."""
    required = cast("Sequence[str]", schema.get("required") or ())
    filled: dict[str, Any] = {}
    for name, spec in properties_of(schema).items():
        is_required = name in required or source.is_form
        value = _value(name, spec, source, is_required)
        # One word of a request does not narrow a search twice.
        is_echo = not is_required and isinstance(value, str) and value in filled.values()
        if (is_required or value is not None) and not is_echo:
            filled[name] = value
    return filled


def fill_each(schema: Schema, source: Source) -> list[dict[str, Any]]:
    """Arguments as `fill` gives them, once for each thing of one kind that the request names.

    "How many are in Rivermont and how many in Oakfield" names two places, "500 points for Harvest Market and 300 for
    Bulk Harbor" two shops: with one call the second would be lost without a word.
    """
    first = fill(schema, source)
    request = _now(source)
    calls: list[dict[str, Any]] = []
    for piece in _pieces(request):
        names = _names_of_things(schema, replace(source, request=piece, earlier=""))
        if not names:
            continue
        is_next = bool(calls) and any(
            calls[-1].get(field) not in (None, name) for field, name in names.items()
        )
        amounts = {}
        if not calls or is_next:
            amounts = _amounts(schema, piece)
        if not calls:
            calls.append(first | names | amounts)
        elif is_next:
            calls.append(calls[-1] | names | amounts)
        else:
            calls[-1] |= names
    if len(calls) < 2:
        return [first]
    return calls[:MOST_THINGS]


def _pieces(request: str) -> list[str]:
    """The stretches of a request between the words that go on with another thing, each with such a word before it."""
    begins = [0, *(match.start() for match in _NEXT_THING.finditer(request))]
    ends = [*begins[1:], len(request)]
    return [request[begin:end] for begin, end in zip(begins, ends, strict=True)]


def _names_of_things(schema: Schema, source: Source) -> dict[str, Any]:
    """The arguments that tell which thing is meant, where a piece of a request names one: an id, a place, a shop."""
    names: dict[str, Any] = {}
    for field, spec in properties_of(schema).items():
        if kind_of(spec) != "string" and not spec.get("enum"):
            continue
        value = None
        if options := spec.get("enum"):
            ranks = rank_options([str(option) for option in options], source)
            if max(ranks) >= RANK_OF_NAMED:
                value = options[ranks.index(max(ranks))]
        elif pattern := spec.get("pattern"):
            value = next(iter(_matching(str(pattern), source)), None)
        elif names_a_thing(field):
            value = text_for(field, source, required=False)
        if value is not None:
            names[field] = value
    return names


def _amounts(schema: Schema, piece: str) -> dict[str, Any]:
    """The numbers that a piece of a request says beside the thing it names."""
    amounts: dict[str, Any] = {}
    for field, spec in properties_of(schema).items():
        if kind_of(spec) in ("integer", "number"):
            number = _number(field, spec, Source(piece), required=False)
            if number is not None:
                amounts[field] = number
    return amounts


def _takes_id_of(schema: Schema, request: str) -> bool:
    """Whether a lookup takes an id that a request names."""
    for spec in properties_of(schema).values():
        pattern = spec.get("pattern")
        if pattern and _matching(str(pattern), Source(request)):
            return True
    return False


def _lacks_id_of(schema: Schema, request: str) -> bool:
    """Whether a lookup has to be told an id that a request does not name."""
    for name in cast("Sequence[str]", schema.get("required") or ()):
        pattern = properties_of(schema)[name].get("pattern")
        if pattern and not _matching(str(pattern), Source(request)):
            return True
    return False


def by_id(tools: Sequence[Tool], text: str) -> Sequence[Tool]:
    """Returns the tools that take the id a text names, which others would answer with all things; those that need
    none, where it names none and speaks of no single thing; else all."""
    if named := [tool for tool in tools if _takes_id_of(tool.schema, text)]:
        return named
    if english.ONE_THING.search(text):
        return tools
    return [tool for tool in tools if not _lacks_id_of(tool.schema, text)] or tools


def unknown_name(schema: Schema, arguments: Mapping[str, Any], request: str) -> str | None:
    """Returns the name in a request that a required argument has no option for; None where it has one.

    The closest option would answer a question about something else.
    """
    names = quoted(request) + capitalised(request)
    required = cast("Sequence[str]", schema.get("required") or ())
    # Optional arguments do not count: a brand or a query takes up any name that is left.
    required_values = [arguments.get(field_name) for field_name in required]
    for field_name in required:
        options = [str(option) for option in properties_of(schema)[field_name].get("enum") or ()]
        if not options or not all(option[:1].isupper() for option in options):
            continue  # options such as "pending" name no thing that a request could name otherwise
        if max(rank_options(options, Source(request))) >= RANK_OF_NAMED:
            continue
        for name in names:
            if name not in required_values:
                return name
    return None


def unknown_day(schema: Schema, request: str) -> str | None:
    """Returns the day of the week in a request that an argument of such days has no option for, required or not."""
    named = [word for word in words(request) if word in _WEEKDAYS]
    for spec in properties_of(schema).values():
        options = {str(option).lower() for option in spec.get("enum") or ()}
        if named and options and options <= _WEEKDAYS and options.isdisjoint(named):
            return named[0].capitalize()
    return None


def why_not(
    schema: Schema, arguments: Mapping[str, Any], text: str, phrases: Phrases, *, may_act: bool
) -> str | None:
    """Says what a call cannot be made for; None where it can be made. `may_act`: it does something in the world."""
    unknown = unknown_name(schema, arguments, text)
    if unknown is not None:
        return phrases.unknown.format(name=unknown)
    day = unknown_day(schema, text)
    if day is not None:
        return phrases.unknown_day.format(day=day)
    missing = missing_id(schema, arguments)
    if missing is not None:
        return phrases.needed.format(name=spoken(missing))
    return _missing_of_act(schema, arguments, text, phrases) if may_act else None


def _missing_of_act(
    schema: Schema, arguments: Mapping[str, Any], request: str, phrases: Phrases
) -> str | None:
    """Says what a request does not say of what an act requires; None where it says all of it.

    A text is always in it somehow. A number is read in it or made up, and so is one of several options.
    """
    said = numbers(request)
    for field in cast("Sequence[str]", schema.get("required") or ()):
        spec = properties_of(schema).get(field, {})
        if "default" in spec or "const" in spec:
            continue
        if spec.get("enum"):
            options = [str(option) for option in spec["enum"]]
            if max(rank_options(options, Source(request))) < RANK_OF_CLOSE:
                return phrases.needed_one_of.format(options=", ".join(options))
        elif kind_of(spec) in ("integer", "number") and arguments.get(field) not in said:
            return phrases.needed.format(name=spoken(field))
    return None


def missing_id(schema: Schema, arguments: Mapping[str, Any]) -> str | None:
    """Returns the required argument of a given form that nothing in a request has; None where each is there."""
    for field_name in cast("Sequence[str]", schema.get("required") or ()):
        spec = properties_of(schema).get(field_name, {})
        pattern = spec.get("pattern")
        if pattern and not re.search(str(pattern), str(arguments.get(field_name, ""))):
            return field_name
    return None


def _value(name: str, spec: Schema, source: Source, required: bool) -> Any:
    if "const" in spec:
        return spec["const"]
    if spec.get("enum"):
        return _option(spec, source, required)
    match kind_of(spec):
        case "string":
            return _string(name, spec, source, required)
        case "integer" | "number":
            return _number(name, spec, source, required)
        case "boolean":
            return _boolean(name, spec, source, required)
        case "array":
            return _array(name, spec, source, required)
        case "object" if required:
            return fill(spec, source)
        case _:
            return None


def _option(spec: Schema, source: Source, required: bool) -> Any:
    options = list(spec["enum"])
    names = [str(option) for option in options]
    # "And on Tuesday?" after a question about Friday is about Tuesday.
    ranks = rank_options(names, replace(source, request=_now(source)))
    if max(ranks) < RANK_OF_NAMED:
        ranks = rank_options(names, source)
    best = options[ranks.index(max(ranks))]
    if max(ranks) >= RANK_OF_CLOSE:
        return best
    if not required:
        return None
    if max(ranks) >= 0.12:
        return best
    # Nothing is close: the option for what has no other is the honest one.
    for option in (spec.get("default"), "other", "none", "general", "unknown"):
        if option in options:
            return option
    return best


_PLURAL = re.compile(r"ies\b|(?<=[hsxz])es\b|s\b")


def rank_options(options: Sequence[str], source: Source) -> list[float]:
    """How well each option fits the request: 1 and more when it is named, else closeness in meaning."""
    text = f" {_singular(' '.join(words(source.request)))} "
    descriptions = [_describe_option(option, source.material) for option in options]
    ranks: list[float] = []
    for rank, option in zip(closeness(source.request, descriptions), options, strict=True):
        is_named = f" {_singular(' '.join(words(spoken(option))))} " in text
        ranks.append(rank + RANK_OF_NAMED if is_named else rank)
    return ranks


def _singular(text: str) -> str:
    """A text whose words have lost the endings of the plural: "bakeries" and "bakery" are one."""
    return _PLURAL.sub(lambda ending: "y" if ending[0] == "ies" else "", text)


def _describe_option(option: str, material: str) -> str:
    """An option and the line of the material that explains it, if one does."""
    line = re.search(
        rf"^\W*{re.escape(option)}\W*\s*[:=–-]\s*(.+)$", material[:20_000], re.M | re.I
    )
    if line:
        return f"{spoken(option)} {line[1][:300]}"
    return spoken(option)


def _string(name: str, spec: Schema, source: Source, required: bool) -> Any:
    text = _text(name, spec, source, required)
    if text is None and required:
        phrase = noun_phrase(source.request, source.about)
        text = str(spec.get("default") or phrase or source.request.strip() or spoken(name))
    if text is None:
        return None
    return _within(text, spec)


def _within(text: str, spec: Schema) -> str:
    if "maxLength" in spec:
        text = cut(text, spec["maxLength"])
    return text.ljust(int(spec.get("minLength") or 0), ".")


def _text(name: str, spec: Schema, source: Source, required: bool) -> str | None:
    """The piece of the request that a field asks for; None where there is none."""
    description = str(spec.get("description") or "")
    if pattern := spec.get("pattern"):
        for text in (
            *_matching(str(pattern), _asked_now(source)),
            *_matching(str(pattern), source),
        ):
            return text
        return _by_number(projection.collect(source.input, name, str(pattern)), source.request)
    if spec.get("format") in ("date", "date-time"):
        return _day(spec["format"], source, required)
    if required and _VERBATIM.search(description):
        return source.request.strip()[:2000]
    text = None
    if required or not SEARCHING.isdisjoint(spoken(name).split()):
        text = text_for(name, _named_anew(source), required=required)
    text = text or text_for(name, source, required=required)
    if text is not None and _TITLED.search(description):
        for title in capitalised(source.request):
            if f'"{title}"' not in text:
                text += f' "{title}"'
    return text


def _day(form: str, source: Source, required: bool) -> str | None:
    day = date(f"{source.request} {source.material[:4000]}")
    if day is None and required:
        day = "1970-01-01"
    if day is not None and form == "date-time":
        return f"{day}T00:00:00Z"
    return day


def _named_anew(source: Source) -> Source:
    """The source with what is asked now alone, where that names a thing without pointing back or narrowing; else
    as it is."""
    now = _now(source)
    goes_on = english.REFERENCE.search(now) or english.NARROWS.search(now)
    if noun_phrase(now, source.about) and not goes_on:
        return replace(source, request=now)
    return source


def _asked_now(source: Source) -> Source:
    """The source without what was said earlier, and without the text beside it."""
    return Source(_now(source))


def _now(source: Source) -> str:
    return source.request.removeprefix(source.earlier)


def _matching(pattern: str, source: Source) -> list[str]:
    """What a pattern describes in the request, else in the text beside it."""
    inner = pattern.removeprefix("^").removesuffix("$")
    for text in (source.request, source.material[:4000]):
        try:
            matches = [match[0] for match in re.finditer(inner, text) if match[0]]
        except re.error:
            # JSON Schema has the patterns of JavaScript, of which Python does not read every one.
            return []
        if matches:
            return matches
    return []


def _by_number(texts: Sequence[str], request: str) -> str | None:
    """The first text; of a request that says "number 2", the second."""
    position = _POSITION.search(request)
    index = int(position[1]) - 1 if position else 0
    if 0 <= index < len(texts):
        return texts[index]
    return None


def _number(name: str, spec: Schema, source: Source, required: bool) -> Any:
    """The number that stands beside the field's name; for a count or a required field any number will do."""
    request = source.request[:4000]
    if not HOW_MANY_ROWS.isdisjoint(spoken(name).split()):
        # "Under 100 points" asks for no hundred rows.
        request = english.AMOUNT.sub(" ", request)
    counts = not _COUNT.isdisjoint(spoken(name).split())
    # "how many points to redeem": a request need not say the noun that the field says.
    is_amount = f"how many {spoken(name)}" in str(spec.get("description") or "").lower()
    request_numbers = number_beside(spoken(name), request)
    if not request_numbers and (counts or required or is_amount):
        request_numbers = numbers(countable(request))
    highest = spec.get("maximum")
    candidates: list[Any] = list(request_numbers)
    if required:
        candidates += [
            spec.get("default"),
            highest if counts else None,
            1,
            spec.get("minimum"),
            highest,
        ]
        candidates += [spec.get("exclusiveMinimum", 0) + 1, spec.get("multipleOf")]
    for number in candidates:
        if number is not None and counts and highest is not None:
            number = min(number, highest)
        if number is not None and _holds(number, spec):
            return int(number) if kind_of(spec) == "integer" else number
    return 0 if required else None


def _holds(number: float, spec: Schema) -> bool:
    """Whether a number is within the bounds of its field.

    The jsonschema package says it too, for 0.14 s of import that every `kit ask` would pay.
    """
    if kind_of(spec) == "integer" and number != int(number):
        return False
    if number < spec.get("minimum", number) or number > spec.get("maximum", number):
        return False
    if "exclusiveMinimum" in spec and number <= spec["exclusiveMinimum"]:
        return False
    if "exclusiveMaximum" in spec and number >= spec["exclusiveMaximum"]:
        return False
    return "multipleOf" not in spec or number % spec["multipleOf"] == 0


def _boolean(name: str, spec: Schema, source: Source, required: bool) -> Any:
    request_words = {word.rstrip("s") for word in words(source.request)}
    for word in words(spoken(name)):
        if word not in STOP and word.rstrip("s") in request_words:
            return not re.search(r"\b(?:no|not|without|don't|never)\b", source.request, re.I)
    if required:
        return spec.get("default") is True
    return None


def _array(name: str, spec: Schema, source: Source, required: bool) -> Any:
    items = plain(spec.get("items") or {})
    values = _items(name, items, source)[: spec.get("maxItems")]
    missing = int(spec.get("minItems") or 0) - len(values)
    if missing > 0:
        values += [_value(name, items, source, True)] * missing
    if not values and not required:
        return None
    return values


def _items(name: str, items: Schema, source: Source) -> list[Any]:
    """Every value of a list that the request names."""
    if options := items.get("enum"):
        ranks = rank_options([str(option) for option in options], source)
        bar = max(0.2, max(ranks) - 0.1)
        return [option for option, rank in zip(options, ranks, strict=True) if rank >= bar]
    kind = kind_of(items)
    if kind in ("integer", "number"):
        return [item for item in numbers(source.request) if _holds(item, items)]
    if kind != "string":
        return []
    if pattern := items.get("pattern"):
        return _matching(str(pattern), source) or projection.collect(
            source.input, name, str(pattern)
        )
    if not {"id", "ids"}.isdisjoint(spoken(name).split()):
        texts = identifiers(source.request) or projection.collect(source.input, name, "")
    else:
        texts = quoted(source.request) or _phrases(source)
    return [_within(text, items) for text in dict.fromkeys(texts)]


def _phrases(source: Source) -> list[str]:
    """What each clause of the request is about."""
    texts: list[str] = []
    for clause in clauses(source.request):
        if clause.content:
            texts.append(noun_phrase(clause.text, source.about) or clause.text)
    return texts
