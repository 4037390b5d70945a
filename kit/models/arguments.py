"""Fills the arguments of a call from a request and a JSON schema; what comes out is valid for the schema."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from kit.models import phrases
from kit.models.composition import cut, extract, subject
from kit.models.similarity import closeness, content, spoken, words

Schema = Mapping[str, Any]


def _set(listed: str) -> frozenset[str]:
    return frozenset(listed.split())


_WHOLE_TEXT = _set("question message request issue problem text utterance input user query_text sentence")
_SHORT_TEXT = _set(
    "summary reason rationale explanation note notes description context comment critique title goal verdict answer"
)
_COUNT = _set("limit count n k top quantity size amount number people guests party max min")
_NUMBER = re.compile(r"(?<![\w.])-?\d[\d,]*(?:\.\d+)?")
_ID = re.compile(r"\b(?=[\w-]*\d)[A-Za-z]+[-_]?[\w-]*\d[\w-]*\b|\b\d{4,}\b")
_QUOTED = re.compile(r"[\"“]([^\"”]+)[\"”]|(?<!\w)'([^']+)'(?!\w)")
_PLACE = re.compile(r"\b(?:in|near|around|at)\s+((?:the\s+)?[A-Za-z][\w'-]*(?:\s+[A-Z][\w'-]*)*)")
_DATE = re.compile(r"\b\d{4}-\d{2}-\d{2}\b")
_PROPER = re.compile(r"(?<!^)(?<![.!?]\s)\b[A-Z][\w'&-]*(?:\s+[A-Z][\w'&-]*)*")
_BRANDISH = _set("brand retailer store merchant shop maker company restaurant")
_PLACEISH = _set("location city place area town region country near address destination")
_SEARCHING = _set("query q search term terms keyword keywords item product topic category name cuisine dish subject phrase")
_NONE = object()


@dataclass(frozen=True, slots=True)
class Source:
    """Where values come from: the request, and longer text given beside it."""

    request: str
    material: str = ""
    lenient: bool = False
    """Fill optional fields too (structured jobs)."""
    root: Schema = field(default_factory=dict[str, Any])


def fill(schema: Schema, source: Source) -> dict[str, Any]:
    """Arguments for an object schema: required fields always, optional ones when the text says something about them."""
    schema = resolve(schema, source.root)
    properties = cast(Mapping[str, Schema], schema.get("properties") or {})
    required = cast(Sequence[str], schema.get("required") or ())
    filled: dict[str, Any] = {}
    for name, spec in properties.items():
        value = _value(name, resolve(spec, source.root), source, name in required)
        if value is not _NONE:
            filled[name] = value
    return filled


def fillable(schema: Schema) -> bool:
    """False when a required field needs something no request holds (an object, a list of objects)."""
    properties = cast(Mapping[str, Schema], schema.get("properties") or {})
    for name in cast(Sequence[str], schema.get("required") or ()):
        spec = resolve(properties.get(name) or {}, schema)
        kind = _kind(spec)
        if kind == "object" or (kind == "array" and _kind(resolve(spec.get("items") or {}, schema)) == "object"):
            return False
    return True


def resolve(schema: Schema, root: Schema) -> Schema:
    """Follows references, merges `allOf`, and picks the first branch of a choice that is not null."""
    for _ in range(8):
        if "$ref" in schema:
            target: Any = root
            for step in str(schema["$ref"]).removeprefix("#").strip("/").split("/"):
                target = target.get(step, {})
            schema = {**target, **{key: value for key, value in schema.items() if key != "$ref"}}
        elif schema.get("allOf"):
            merged: dict[str, Any] = {}
            for part in schema["allOf"]:
                merged |= resolve(part, root)
            schema = {**merged, **{key: value for key, value in schema.items() if key != "allOf"}}
        elif choice := schema.get("anyOf") or schema.get("oneOf"):
            first = next((branch for branch in choice if branch.get("type") != "null"), choice[0])
            schema = {**{key: value for key, value in schema.items() if key not in ("anyOf", "oneOf")}, **first}
        else:
            return schema
    return schema


def _kind(spec: Schema) -> str:
    kind = spec.get("type")
    if isinstance(kind, list):
        kind = next((k for k in cast(list[str], kind) if k != "null"), "null")
    if kind is None:
        kind = "object" if "properties" in spec else "array" if "items" in spec else "string"
    return str(cast(object, kind))


def _value(name: str, spec: Schema, source: Source, required: bool) -> Any:
    required = required or source.lenient
    if "const" in spec:
        return spec["const"]
    if spec.get("enum"):
        return _enum(name, spec, source, required)
    match _kind(spec):
        case "string":
            return _string(name, spec, source, required)
        case "integer" | "number" as kind:
            return _number(name, spec, source, required, whole=kind == "integer")
        case "boolean":
            return _boolean(name, spec, source, required)
        case "array":
            return _array(name, spec, source, required)
        case "object":
            return fill(spec, source) if required else _NONE
        case _:
            return None if required else _NONE


def _enum(name: str, spec: Schema, source: Source, required: bool) -> Any:
    options = list(spec["enum"])
    ranks = rank_options([str(option) for option in options], source)
    best = max(range(len(options)), key=lambda i: ranks[i])
    if ranks[best] >= (0.12 if required else 0.5):
        return options[best]
    if "default" in spec and spec["default"] in options:
        return spec["default"] if required else _NONE
    other = next((option for option in options if str(option).lower() in ("other", "none", "general", "unknown")), options[best])
    return other if required else _NONE


def rank_options(options: Sequence[str], source: Source) -> list[float]:
    """How well each option fits the request: 1 and more when it is named, else closeness in meaning."""
    text = f" {' '.join(words(source.request))} "
    told = [_told_of(option, source.material) for option in options]
    ranks = closeness(source.request, told)
    return [
        rank + (1.0 if f" {' '.join(words(spoken(option)))} " in text else 0.0)
        for rank, option in zip(ranks, options, strict=True)
    ]


def _told_of(option: str, material: str) -> str:
    """An option and the line of the material that explains it, if one does."""
    line = re.search(rf"^\W*{re.escape(option)}\W*\s*[:=–-]\s*(.+)$", material[:20_000], re.M | re.I)
    return f"{spoken(option)} {line[1][:300]}" if line else spoken(option)


def _string(name: str, spec: Schema, source: Source, required: bool) -> Any:
    text = _text(name, spec, source, required)
    if text is None:
        if "default" in spec and isinstance(spec["default"], str) and required:
            return spec["default"]
        if not required:
            return _NONE
        text = subject(source.request) or source.request.strip() or spoken(name)
    return _within(text, spec, source)


def _within(text: str, spec: Schema, source: Source) -> str:
    least, most = int(spec.get("minLength") or 0), spec.get("maxLength")
    if pattern := spec.get("pattern"):
        return _matching(str(pattern), text, source)
    if isinstance(most, int):
        text = cut(text, most) if len(text) > most else text
    return text.ljust(least, ".") if len(text) < least else text


def _matching(pattern: str, text: str, source: Source) -> str:
    for candidate in (text, source.request, source.material[:4000]):
        try:
            found = re.search(pattern.removeprefix("^").removesuffix("$"), candidate)
        except re.error:
            return text
        if found and re.search(pattern, found[0]):
            return found[0]
    return text


def _text(name: str, spec: Schema, source: Source, required: bool) -> str | None:
    """The piece of the text a field of this name asks for; None when there is none."""
    request = source.request.strip()
    parts = set(spoken(name).split())
    if spec.get("format") in ("date", "date-time") or "date" in parts:
        found = _DATE.search(f"{request} {source.material[:4000]}")
        day = found[0] if found else ("1970-01-01" if spec.get("format") else None)
        return f"{day}T00:00:00Z" if day and spec.get("format") == "date-time" else day
    if "id" in parts or "ids" in parts or "number" in parts or "code" in parts:
        found = _ID.search(request)
        return found[0] if found else None
    if parts & _SHORT_TEXT:
        given = source.material if source.lenient and source.material else request
        return cut(extract(request, given, 280), 280) if required else None
    if parts & _WHOLE_TEXT:
        return request[:2000]
    if parts & _BRANDISH:
        found = _QUOTED.search(request) or _PROPER.search(request)
        return found[0].strip("\"'“”") if found else None
    if parts & _PLACEISH:
        found = _PLACE.search(request)
        return found[1] if found and found[1].lower() not in phrases.STOP else None
    if source.lenient and required and "query" in parts:
        return request
    return _sought(parts, request, required)


def _sought(parts: set[str], request: str, required: bool) -> str | None:
    if quoted := _QUOTED.search(request):
        return quoted[1] or quoted[2]
    searching = parts & _SEARCHING
    if not required and not searching:
        return None
    thing = noun_phrase(request)
    return thing or (request if "query" in parts or required else None)


_GENERIC = _set(
    """deal deals offer offers product products item items thing things information info detail details result results
    option options list help stuff article articles cheap cheapest best good great nice available current new today find
    search show look recommend suggest buy order check explain compare price prices cost near nearby"""
)


def noun_phrase(request: str) -> str:
    """What a request seeks, without the words around it: `find coffee deals` gives `coffee`; empty when nothing is left."""
    kept = [word for word in content(request) if word not in phrases.STOP]
    narrow = [word for word in kept if word not in _GENERIC and not word.isdigit()]
    return " ".join((narrow or kept)[:6])


def numbers(text: str) -> list[float]:
    """The numbers of a text in order, digits and small number words."""
    found: list[tuple[int, float]] = [
        (m.start(), float(m[0].replace(",", ""))) for m in _NUMBER.finditer(text) if m[0].strip(",")
    ]
    for match in re.finditer(r"[a-z]+", text.lower()):
        if match[0] in phrases.NUMBERS and match[0] != "one":
            found.append((match.start(), float(phrases.NUMBERS[match[0]])))
    return [value for _, value in sorted(found)]


def _number(name: str, spec: Schema, source: Source, required: bool, *, whole: bool) -> Any:
    low, high = _bounds(spec, whole)
    said = [value for value in numbers(source.request[:4000]) if low <= value <= high and (not whole or value == int(value))]
    fits = bool(set(spoken(name).split()) & _COUNT) or _near(name, source.request)
    if said and (required or fits):
        value = said[0]
    elif "default" in spec and isinstance(spec["default"], int | float):
        return spec["default"] if required else _NONE
    elif not required:
        return _NONE
    else:
        value = _middle(low, high)
    return _on_grid(value, low, high, spec, whole)


def _bounds(spec: Schema, whole: bool) -> tuple[float, float]:
    step = 1.0 if whole else 1e-6
    low = float(spec.get("minimum", float("-inf")))
    high = float(spec.get("maximum", float("inf")))
    if isinstance(spec.get("exclusiveMinimum"), int | float) and not isinstance(spec.get("exclusiveMinimum"), bool):
        low = max(low, float(spec["exclusiveMinimum"]) + step)
    if isinstance(spec.get("exclusiveMaximum"), int | float) and not isinstance(spec.get("exclusiveMaximum"), bool):
        high = min(high, float(spec["exclusiveMaximum"]) - step)
    return low, high


def _middle(low: float, high: float) -> float:
    if low == float("-inf"):
        return min(1.0, high)
    return max(1.0, low) if high == float("inf") else (low + high) / 2


def _on_grid(value: float, low: float, high: float, spec: Schema, whole: bool) -> float | int:
    if step := spec.get("multipleOf"):
        value = round(value / step) * step
        value = value + step if value < low else value - step if value > high else value
    if not whole:
        return value
    rounded = int(value // 1)
    return rounded + 1 if rounded < low else rounded


def _near(name: str, request: str) -> bool:
    wanted = [word for word in spoken(name).split() if word not in phrases.STOP]
    return any(word.rstrip("s") in {w.rstrip("s") for w in words(request)} for word in wanted)


def _boolean(name: str, spec: Schema, source: Source, required: bool) -> Any:
    if _near(name, source.request):
        return not re.search(r"\b(?:no|not|without|don't|never)\b", source.request, re.I)
    if not required:
        return _NONE
    return spec["default"] if isinstance(spec.get("default"), bool) else False


def _array(name: str, spec: Schema, source: Source, required: bool) -> Any:
    least, most = int(spec.get("minItems") or 0), int(spec.get("maxItems") or 8)
    items = resolve(cast(Schema, spec.get("items") or {"type": "string"}), source.root)
    values = _candidates(name, items, source, max(1, most))
    if not values and not required and not least:
        return _NONE
    return _sized(values, items, least, most, name, source)


def _candidates(name: str, items: Schema, source: Source, most: int) -> list[Any]:
    from kit.models.routing import clauses

    if options := items.get("enum"):
        ranks = rank_options([str(option) for option in options], source)
        top = max(ranks)
        return [option for option, rank in zip(options, ranks, strict=True) if rank >= max(0.2, top - 0.1)][:most]
    pieces = [clause.text for clause in clauses(source.request)] or [source.request]
    match _kind(items):
        case "object" if source.lenient:
            each = [Source(piece, source.material, True, source.root) for piece in pieces]
            return [fill(items, one) for one in each][:most]
        case "string":
            quoted = [m[1] or m[2] for m in _QUOTED.finditer(source.request)]
            ids = [m[0] for m in _ID.finditer(source.request)] if "id" in name.lower() else []
            texts = ids or quoted or ([noun_phrase(piece) for piece in pieces] if "id" not in name.lower().split("_") else [])
            return [_within(text, items, source) for text in dict.fromkeys(texts) if text][:most]
        case "integer" | "number" as kind:
            low, high = _bounds(items, kind == "integer")
            said = [v for v in numbers(source.request) if low <= v <= high and (kind == "number" or v == int(v))]
            return [_on_grid(v, low, high, items, kind == "integer") for v in said][:most]
        case _:
            return []


def _sized(values: list[Any], items: Schema, least: int, most: int, name: str, source: Source) -> list[Any]:
    kept: list[Any] = []
    for value in values:
        if value not in kept:
            kept.append(value)
    spare = list(items.get("enum") or ())
    while len(kept) < least:
        extra = next((option for option in spare if option not in kept), _NONE)
        kept.append(extra if extra is not _NONE else _another(items, len(kept), name, source))
    return kept[:most]


def _another(items: Schema, n: int, name: str, source: Source) -> Any:
    """One more item, different from the ones before it where the type allows."""
    match _kind(items):
        case "string" if not items.get("enum"):
            return _within(f"{n + 1} {spoken(name)}", items, source)
        case "integer" | "number" as kind:
            low, high = _bounds(items, kind == "integer")
            start = low if low != float("-inf") else min(0.0, high - n)
            return _on_grid(min(start + n, high), low, high, items, kind == "integer")
        case "boolean":
            return n % 2 == 0
        case _:
            return _value(name, items, source, True)
