"""A read-only mapping from id to part that answers a wrong id with the nearest known ones."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol, TypeVar

from kit.core.errors import UnknownId

T = TypeVar("T")


class _Part(Protocol):
    @property
    def id(self) -> str: ...


PartT = TypeVar("PartT", bound=_Part)


class _Missing(UnknownId, KeyError):
    """An UnknownId that is also a KeyError, which `get` and `in` of Mapping expect."""

    # KeyError would show the sentence in quotes, as it shows a key.
    __str__ = Exception.__str__


class Registry(Mapping[str, T]):
    """Parts by id. `registry[missing]` raises UnknownId; `get` and `in` ask without raising."""

    __slots__ = ("_items", "noun")

    def __init__(self, noun: str, items: Mapping[str, T] | Iterable[tuple[str, T]] = ()):
        self.noun = noun
        self._items: dict[str, T] = dict(items)

    def __getitem__(self, key: str) -> T:
        try:
            return self._items[key]
        except KeyError:
            raise _Missing(self.noun, key, self._items) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __repr__(self) -> str:
        return f"Registry({self.noun!r}, {list(self._items)})"


def by_id(noun: str, parts: Iterable[PartT]) -> Registry[PartT]:
    """The registry of parts that know their own ids."""
    return Registry(noun, {part.id: part for part in parts})
