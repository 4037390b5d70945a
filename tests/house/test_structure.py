"""The house keeps its shape: no two files need each other, and a room can be surveyed."""

from collections import Counter
from graphlib import CycleError, TopologicalSorter
from pathlib import PurePath

import grimp

from tests.house.test_repository import sources

ROOM = 20
"""Files in a room, its sub-rooms aside."""


def test_no_file_needs_one_that_needs_it():
    """Two files in a circle are one file in two places. Imports for type checkers and inside
    functions count as well."""
    graph = grimp.build_graph("kit", cache_dir=None)
    assert len(graph.modules) > 200
    try:
        TopologicalSorter(
            {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
        ).prepare()
    except CycleError as error:
        raise AssertionError(" <- ".join(error.args[1])) from None


def test_a_room_can_be_surveyed():
    """A folder of more files than a reader keeps in mind hides the one that is looked for."""
    rooms = Counter(
        PurePath(name).parent.as_posix()
        for name, _ in sources("kit")
        if not name.endswith("/__init__.py")
    )
    assert {room: size for room, size in rooms.items() if size > ROOM} == {}
