"""A stranger reads names first: files say what they hold, and what is bound is called by what it is."""

import ast
import re
from collections.abc import Iterator

from tests.house.test_repository import CODE, ROOT, sources

PARTICIPLES = frozenset(
    word
    for line in (ROOT / "tests/participles.txt").read_text().splitlines()
    if not line.startswith("#")
    for word in line.split()
)
EMPTY = frozenset(
    ["utils", "util", "helper", "helpers", "manager", "common", "base", "impl", "misc"]
)
"""Words that say that the noun has not been found yet."""
METAPHORS = frozenset(
    [
        "take", "takes", "tape", "taped", "losses", "reel", "misfit", "misfits", "debt", "errand", "errands", "plates", "shelf",
        "asked", "lab", "crew",
    ]
)  # fmt: skip
"""Words that name a file by a picture: who looks for a recording, a mismatch or a job does not search for them."""


def bound_names(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Every name that code binds, with its line: functions, classes, parameters, variables, attributes and patterns."""
    for node in ast.walk(tree):
        match node:
            case (
                ast.FunctionDef(name=name)
                | ast.AsyncFunctionDef(name=name)
                | ast.ClassDef(name=name)
            ):
                yield name, node.lineno
            case (
                ast.arg(arg=name)
                | ast.Name(id=name, ctx=ast.Store())
                | ast.Attribute(attr=name, ctx=ast.Store())
            ):
                yield name, node.lineno
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield name, node.lineno
            case _:
                pass


def is_participle(name: str) -> bool:
    """The whole name counts, without its underscores: `found` and `_found` do, `found_rows` does not."""
    return name.strip("_").lower() in PARTICIPLES


def is_misnamed(path: str) -> bool:
    """Whether a word of a file's path is one of the refused ones."""
    return not (EMPTY | METAPHORS).isdisjoint(re.split(r"[/_.]", path))


def test_less_than_one_name_in_a_hundred_is_a_bare_participle():
    """`found`, `said` and `kept` make a reader look up what was found; the few that are left are
    stored or printed names."""
    assert len(PARTICIPLES) >= 100
    names = [
        (path, line, name)
        for path, text in sources("kit")
        for name, line in bound_names(ast.parse(text))
    ]
    bare = [f"{path}:{line} {name}" for path, line, name in names if is_participle(name)]
    assert len(bare) < len(names) / 100, f"{len(bare)} of {len(names)}: {bare}"


def test_files_are_named_for_what_they_hold():
    """Searching for a recording must find the file about recordings: neither an empty word nor a
    metaphor names a file."""
    assert [name for name, _ in sources(*CODE, "tests") if is_misnamed(name)] == []
