"""Builds an answer for a declared JSON schema out of tool results, with an item for each row that has an identifier."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, cast

from kit.core.language.words import spoken
from kit.models.offline.composition import UNMATCHED, closest, sentences
from kit.models.offline.json_schema import Schema, properties_of
from kit.models.offline.similarity import closeness

_SCHEMA_REQUEST = re.compile(
    r"Answer with JSON of this schema and with nothing else: (\{.*\})$", re.MULTILINE
)
_DRAFT = re.compile(r"^draft: (\{.*\})$", re.MULTILINE)
_ID = re.compile(r"\b[a-z]{2}-\d{3,}\b")
_NAME = re.compile(r"\s*([^(:,]+)")
_CANDIDATE = re.compile(r"Candidate \d+:\n(.*?)(?=\n\nCandidate \d+:|\Z)", re.DOTALL)
ITEMS = 3
"""Rows of a list where the schema names no number."""


def requested_schema(system: str) -> Schema | None:
    """The schema a prompt asks the answer to have; None when it asks for none."""
    match = _SCHEMA_REQUEST.search(system)
    if match:
        return cast("Schema", json.loads(match[1]))
    return None


def build(schema: Schema, request: str, system: str, results: Sequence[str]) -> str:
    """JSON of the schema: copied from a draft where there is one, else told from what was found."""
    draft = _DRAFT.search(system)
    draft_fields: Mapping[str, Any] = json.loads(draft[1]) if draft else {}
    beside: list[str] = []
    for text in results:
        beside += [sentence for sentence in sentences(text) if not _ID.match(sentence)]
    fields = properties_of(schema)
    has_text = any(spec.get("type") == "string" for spec in fields.values())
    source = _Source(request, _rows(results), beside, has_text)
    answer: dict[str, Any] = {}
    for name, spec in fields.items():
        answer[name] = draft_fields[name] if name in draft_fields else source.value(name, spec)
    return json.dumps(answer)


@dataclass(frozen=True)
class _Source:
    """The request, the rows by identifier, and what was said beside them."""

    request: str
    rows: Mapping[str, list[str]]
    beside: list[str]
    has_text: bool
    """Whether the schema has a text of its own, where what is missing can be said."""

    @property
    def missing(self) -> list[str]:
        """What tools said is not there: nobody may read an answer to something else in its place."""
        return [sentence for sentence in dict.fromkeys(self.beside) if UNMATCHED.match(sentence)]

    def value(self, name: str, spec: Schema) -> Any:
        items = cast("Schema", spec.get("items") or {})
        match spec.get("type"):
            case "array" if items.get("type") == "object":
                objects: list[dict[str, Any]] = []
                if not self.has_text:
                    objects += [self._item(items, "", [sentence]) for sentence in self.missing]
                objects += [self._item(items, key, lines) for key, lines in self.rows.items()]
                return objects[: int(spec.get("maxItems") or ITEMS)]
            case "array":
                return list(self.rows)[: int(spec.get("maxItems") or ITEMS)]
            case "integer":
                return self._preferred()
            case "number":
                lines = list(chain.from_iterable(self.rows.values()))
                return self._sure(lines or self.beside)
            case "boolean":
                return True
            case _:
                return self._text(name, spec)

    def _text(self, name: str, spec: Schema) -> str:
        """What tools said is missing, and then the sentences that come closest."""
        # The first sentence of a row begins with the name of what the row is about.
        first_sentences: list[str] = []
        for key, row in self.rows.items():
            for line in row:
                bare = _bare(line, key)
                if bare:
                    first_sentences.append(sentences(bare)[0])
        summary = self._closest_sentences(name, spec, first_sentences or self.beside)
        found = [sentence for sentence in sentences(summary) if sentence not in self.missing]
        return " ".join([*self.missing, *found][: int(spec.get("maxSentences") or 2)])

    def _item(self, schema: Schema, key: str, lines: list[str]) -> dict[str, Any]:
        bare = [_bare(line, key) for line in lines]
        pieces = list(chain.from_iterable(map(sentences, bare)))
        # Where no field is for the title, the first sentence is what names it.
        lead = pieces[0] if pieces and "title" not in properties_of(schema) else ""
        item: dict[str, Any] = {}
        for name, spec in properties_of(schema).items():
            if name.endswith("id"):
                item[name] = key
            elif name == "title":
                item[name] = (_NAME.match(bare[0]) or [bare[0], bare[0]])[1].strip()
            elif spec.get("type") == "number":
                item[name] = self._sure(lines)
            else:
                item[name] = self._closest_sentences(name, spec, pieces)
                if lead in pieces and lead not in item[name]:
                    other = self._closest_sentences(name, {**spec, "maxSentences": 1}, pieces[1:])
                    item[name] = f"{lead} {other}"
                pieces = [piece for piece in pieces if piece not in item[name]] or pieces
        return item

    def _closest_sentences(self, name: str, spec: Schema, texts: Sequence[str]) -> str:
        """The sentences that come closest to what the field is for, in their own order."""
        pieces = list(dict.fromkeys(chain.from_iterable(map(sentences, texts))))
        if not pieces:
            return "Nothing was found for this."
        if spec.get("description"):
            aim = f"{spoken(name)} {spec['description']}"
        else:
            aim = self.request
        return " ".join(closest(aim, pieces, int(spec.get("maxSentences") or 2)))

    def _preferred(self) -> int:
        """Which candidate comes closest to the request, counted from one."""
        candidates = _CANDIDATE.findall(self.request)
        if not candidates:
            return 1
        ranks = closeness(self.request.split("\n", 1)[0], candidates)
        return 1 + ranks.index(max(ranks))

    def _sure(self, lines: Sequence[str]) -> float:
        """A made-up confidence: how close the best line comes to the request."""
        if lines:
            closest = max(closeness(self.request, list(lines)), default=0.0)
        else:
            closest = -0.2
        return round(min(0.95, max(0.2, 0.5 + float(closest))), 2)


def _rows(results: Sequence[str]) -> dict[str, list[str]]:
    """Identifier -> the lines that begin with it, from every tool, in the order they came."""
    rows: dict[str, list[str]] = {}
    for text in results:
        for line in text.splitlines():
            id_match = _ID.match(line)
            if id_match:
                rows.setdefault(id_match[0], []).append(line)
    return rows


def _bare(line: str, key: str) -> str:
    return line.removeprefix(key).strip()
