"""The manga library: titles, what readers made of them, what may be told of a story and what may not."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import ValidationError

from kit.core.context import Principal
from kit.core.errors import DataError
from kit.core.value import Value
from kit.upstream.asking import Asking
from kit.upstream.match import Found, Index

if TYPE_CHECKING:
    from kit.upstream.world import World

Payload = dict[str, Any]
V = TypeVar("V", bound=Value)
RULE = "Tell how an arc begins and what is at stake; keep back how it ends, and what it reveals."


class Arc(Value):
    name: str
    first: int
    last: int
    gist: str
    hidden: str
    """What it reveals: never served."""


class Reviews(Value):
    count: int
    score: int
    """Of 100."""
    praise: str
    complaint: str


class Link(Value):
    id: str
    how: str


class Title(Value):
    id: str
    title: str
    studio: str
    year: int
    genres: tuple[str, ...]
    words: tuple[str, ...]
    volumes: int
    running: bool
    premise: str
    arcs: tuple[Arc, ...]
    reviews: Reviews
    links: tuple[Link, ...]


class Reader(Value):
    tenant_id: str
    user_id: str
    likes: tuple[str, ...]
    dislikes: str
    read: tuple[str, ...]


NEW = Reader(tenant_id="", user_id="", likes=(), dislikes="", read=())
"""A reader nothing is known of yet."""


@dataclass(frozen=True)
class Library:
    """data/manga in memory; read when it is first asked for."""

    folder: Path

    @cached_property
    def titles(self) -> Mapping[str, Title]:
        return {title.id: title for title in self._rows("titles", Title)}

    @cached_property
    def readers(self) -> Mapping[tuple[str, str], Reader]:
        return {(reader.tenant_id, reader.user_id): reader for reader in self._rows("readers", Reader)}

    @cached_property
    def index(self) -> Index[Title]:
        """Titles by their words, well-reviewed ones first."""
        return Index(sorted(self.titles.values(), key=lambda title: (-title.reviews.score, title.id)), _words)

    def _rows(self, table: str, row: type[V]) -> Sequence[V]:
        """Raises DataError naming the file, the line and the way to write it anew."""
        path, fix = self.folder / f"{table}.jsonl", "write the data anew with `python data/make_manga.py`"
        found: list[V] = []
        try:
            found.extend(row.model_validate_json(line) for line in path.read_text(encoding="utf-8").splitlines())
        except OSError as error:
            raise DataError(f"cannot read {path} ({error.strerror}): {fix}") from error
        except ValidationError as error:
            raise DataError(f"{path}, line {len(found) + 1}: {error.errors()[0]['msg']}; {fix}") from error
        return found


def catalog(world: "World", principal: Principal, asking: Asking) -> Payload:
    """Titles that fit the words asked for, best reviewed first; newest first where something new is asked for."""
    found = world.library.index.search(asking.text)
    rows = found.rows
    if any(word in asking.text.lower().split() for word in ("new", "newer", "newest", "recent", "latest")):
        rows = tuple(sorted(rows, key=lambda title: -title.year))
    return _page([_told(title) for title in rows[: asking.limit]], found)


def prefs(world: "World", principal: Principal, asking: Asking) -> Payload:
    """What a reader likes, and well-reviewed titles of those genres that are not read yet."""
    library = world.library
    reader = library.readers.get((principal.tenant_id, principal.user_id), NEW)
    fresh = [t for t in library.index.rows if (not reader.likes or t.genres[0] in reader.likes) and t.id not in reader.read]
    found = Index(fresh, _words).search(asking.text)
    rows = found.rows if found.match == "named" else tuple(fresh)
    return {
        **_page([_told(title) for title in rows[: asking.limit]], found),
        "likes": list(reader.likes),
        "dislikes": reader.dislikes,
        "read": [library.titles[key].title for key in reader.read],
    }


def sentiment(world: "World", principal: Principal, asking: Asking) -> Payload:
    """What reviewers make of the titles asked for."""
    found = world.library.index.search(asking.text)
    rows = [{**_told(title), **title.reviews.model_dump()} for title in found.rows[: asking.limit]]
    return _page(rows, found)


def links(world: "World", principal: Principal, asking: Asking) -> Payload:
    """How the titles asked for hang together with others."""
    titles = world.library.titles
    found = world.library.index.search(asking.text)
    rows = [
        {**_told(title), "links": [{"how": link.how, "id": link.id, "title": titles[link.id].title} for link in title.links]}
        for title in found.rows[: asking.limit]
    ]
    return _page(rows, found)


def policy(world: "World", principal: Principal, asking: Asking) -> Payload:
    """What may be told of a story: the rule, and of each arc its beginning alone."""
    found = world.library.index.search(asking.text)
    rows = [
        {**_told(title), "arcs": [arc.model_dump(exclude={"hidden"}) for arc in title.arcs]}
        for title in found.rows[: min(2, asking.limit)]
    ]
    return {**_page(rows, found), "rule": RULE}


def _page(rows: list[Payload], found: Found[Any]) -> Payload:
    return {"titles": rows, "match": found.match, "topic": found.topic, "found": len(found.rows)}


def _told(title: Title) -> Payload:
    return title.model_dump(include={"id", "title", "studio", "year", "genres", "volumes", "running", "premise"})


def _words(title: Title) -> list[tuple[float, str]]:
    return [
        (4.0, title.title),
        (5.0, title.id),
        (3.0, title.genres[0]),
        (1.5, " ".join(title.genres[1:])),
        (1.0, " ".join(title.words)),
        (0.6, title.premise),
        (1.0, title.studio),
    ]
