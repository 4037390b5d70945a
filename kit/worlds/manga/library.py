"""The manga library: titles and readers, as data/manga holds them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from kit.core.errors import DataError
from kit.core.value import Value
from kit.worlds.service.search import Index

V = TypeVar("V", bound=Value)


class Arc(Value):
    """One story arc; `hidden` is what it reveals, which no reader is told."""

    name: str
    first: int
    last: int
    gist: str
    hidden: str
    """What it reveals: never served."""


class Reviews(Value):
    """What reviewers make of a title."""

    count: int
    score: int
    """Of 100."""
    praise: str
    complaint: str


class Link(Value):
    """How a title hangs together with another one."""

    id: str
    how: str


class Title(Value):
    """One series."""

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


_TALK = """
arc arcs art author authors beginner between bored boring catch chapter chapters compare darker difference finished
funny gem hang happens hidden liked long longer love manga mangas might miss missed mood plot read reader readers
reading recommend recommendation recommended release releases remind review reviews safe say says scarier scary series
setting short shorter shortest similar someone start starting starts stories story suits summarize taste tastes title
titles tonight try volume volumes weekend worth
"""
TALK = frozenset(_TALK.split())
"""Words of people who talk about reading; where no title has them they name none."""


class Reader(Value):
    """What is known of a reader."""

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
        return {
            (reader.tenant_id, reader.user_id): reader for reader in self._rows("readers", Reader)
        }

    @cached_property
    def index(self) -> Index[Title]:
        """Titles by their words, well-reviewed ones first."""
        titles = sorted(self.titles.values(), key=lambda title: (-title.reviews.score, title.id))
        return Index(titles, words, talk=TALK)

    def _rows(self, table: str, row: type[V]) -> Sequence[V]:
        """Raises DataError naming the file, the line and the way to write it anew."""
        path = self.folder / f"{table}.jsonl"
        fix = "write the data anew with `python data/make_manga.py`"
        values: list[V] = []
        try:
            values.extend(
                row.model_validate_json(line)
                for line in path.read_text(encoding="utf-8").splitlines()
            )
        except OSError as error:
            raise DataError(f"cannot read {path} ({error.strerror}): {fix}") from error
        except ValidationError as error:
            raise DataError(
                f"{path}, line {len(values) + 1}: {error.errors()[0]['msg']}; {fix}"
            ) from error
        return values


def words(title: Title) -> list[tuple[float, str]]:
    """Where a search finds a title, and what a hit there weighs."""
    return [
        (4.0, title.title),
        (5.0, title.id),
        (3.0, title.genres[0]),
        (1.5, " ".join(title.genres[1:])),
        (1.0, " ".join(title.words)),
        (0.6, title.premise),
        (1.0, title.studio),
    ]
