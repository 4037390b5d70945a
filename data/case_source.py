"""The source of the case sets: data/source/switches.yaml and the files of data/source/cases, each of its own shape."""

from pathlib import Path
from typing import TypeVar

import yaml
from pydantic import TypeAdapter, ValidationError

from kit.core.errors import DataError
from kit.core.value import Value
from kit.home import HOME

SOURCE = HOME / "data" / "source" / "cases"
T = TypeVar("T")


class Request(Value):
    """A request, and the key of what is true of its answer."""

    ask: str
    fact: str | None = None


class Frame(Value):
    """How parts are joined: the list each comes from, and the text around them."""

    kinds: str
    text: str


class Parts(Value):
    """What is asked of one vertical, as part of a longer message."""

    topic: tuple[str, ...]
    do: tuple[str, ...]
    ask: tuple[str, ...]


class MixedSource(Value):
    """What data/source/cases/mixed.yaml holds."""

    verticals: dict[str, Parts]
    facts: dict[str, str]
    frames: dict[int, tuple[Frame, ...]]


class Short(Value):
    """A short message of fastpath.yaml; `after` is (agent, user, assistant)."""

    user: str
    after: tuple[str, str, str] | None = None
    expect: tuple[str, ...] = ()


class Attempt(Value):
    """An attempt of injection.yaml."""

    user: str
    expect: tuple[str, ...] = ()
    agent: str = ""
    answer: str = ""
    forbids: tuple[str, ...] = ()


class Hop(Value):
    """A dialogue of references.yaml."""

    last: tuple[str, str]
    carried: tuple[str, ...]
    turns: tuple[tuple[str, str, str], ...]


class Long(Value):
    """A dialogue of long.yaml."""

    id: str
    kept: dict[str, tuple[str, ...]]
    turns: tuple[tuple[str, str, str], ...]


class Vertical(Value):
    """What is asked of one vertical, and what it may have answered."""

    reply: str
    questions: tuple[str, ...]


class SwitchSource(Value):
    """What data/source/switches.yaml holds."""

    bridges: tuple[str, ...]
    """How a person begins to speak of something else."""
    verticals: dict[str, Vertical]


def read_source(name: str, shape: type[T], folder: Path = SOURCE) -> T:
    """Reads a source file as a value. Raises DataError naming file and field when it is missing or of another shape."""
    path = folder / f"{name}.yaml"
    try:
        return TypeAdapter(shape).validate_python(yaml.safe_load(path.read_text(encoding="utf-8")))
    except ValidationError as error:
        fault = error.errors()[0]
        raise DataError(
            f"{path}: {'.'.join(map(str, fault['loc']))}: {fault['msg'].lower()}"
        ) from error
    except (OSError, yaml.YAMLError) as error:
        raise DataError(f"{path} cannot be used: {error}") from error
