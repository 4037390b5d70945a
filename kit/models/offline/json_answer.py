"""Builds an answer for a declared JSON schema out of tool results, with an item for each row that has an identifier."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from kit.models.offline.composition import UNMATCHED, sentences
from kit.models.offline.json_schema import Schema, properties_of
from kit.models.offline.similarity import closeness, spoken

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
    source = _Source(
        request,
        _rows(results),
        [s for text in results for s in sentences(text) if not _ID.match(s)],
        any(spec.get("type") == "string" for spec in properties_of(schema).values()),
    )
    return json.dumps(
        {
            name: draft_fields.get(name, source.value(name, spec))
            for name, spec in properties_of(schema).items()
        }
    )


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
                most = int(spec.get("maxItems") or ITEMS)
                filled = [self._item(items, key, lines) for key, lines in self.rows.items()]
                if self.has_text:
                    missing = []
                else:
                    missing = [self._item(items, "", [s]) for s in self.missing]
                return [*missing, *filled][:most]
            case "array":
                return list(self.rows)[: int(spec.get("maxItems") or ITEMS)]
            case "integer":
                return self._preferred()
            case "number":
                return self._sure(
                    [line for lines in self.rows.values() for line in lines] or self.beside
                )
            case "boolean":
                return True
            case _:
                lines = [_bare(line, key) for key, row in self.rows.items() for line in row]
                first_sentences = [
                    sentences(line)[0] for line in lines if line
                ]  # each begins with its name
                most = int(spec.get("maxSentences") or 2)
                summary = self._closest_sentences(name, spec, first_sentences or self.beside)
                others = [s for s in sentences(summary) if s not in self.missing]
                return " ".join([*self.missing, *others][:most])

    def _item(self, schema: Schema, key: str, lines: list[str]) -> dict[str, Any]:
        bare = [_bare(line, key) for line in lines]
        pieces = [piece for text in bare for piece in sentences(text)]
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
                pieces = [piece for piece in pieces if piece not in item[name]] or pieces
        return item

    def _closest_sentences(self, name: str, spec: Schema, texts: Sequence[str]) -> str:
        """The sentences that come closest to what the field is for, in their own order."""
        pieces = list(dict.fromkeys(piece for text in texts for piece in sentences(text)))
        if not pieces:
            return "Nothing was found for this."
        if spec.get("description"):
            aim = f"{spoken(name)} {spec['description']}"
        else:
            aim = self.request
        ranks = closeness(aim, pieces)
        best = sorted(range(len(pieces)), key=lambda at: -ranks[at])[
            : int(spec.get("maxSentences") or 2)
        ]
        return " ".join(pieces[at] for at in sorted(best))

    def _preferred(self) -> int:
        """Which candidate comes closest to the request, counted from one."""
        candidates = _CANDIDATE.findall(self.request)
        if not candidates:
            return 1
        ranks = closeness(self.request.split("\n", 1)[0], candidates)
        return 1 + max(range(len(candidates)), key=lambda at: ranks[at])

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
    for line in (line for text in results for line in text.splitlines()):
        id_match = _ID.match(line)
        if id_match:
            rows.setdefault(id_match[0], []).append(line)
    return rows


def _bare(line: str, key: str) -> str:
    return line.removeprefix(key).strip()
