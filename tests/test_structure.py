"""The house keeps its shape: no two files need each other."""

from graphlib import CycleError, TopologicalSorter

import grimp


def test_no_file_needs_one_that_needs_it():
    """Two files in a circle are one file in two places. Imports for type checkers and inside functions count as well."""
    graph = grimp.build_graph("kit", cache_dir=None)
    assert len(graph.modules) > 200
    try:
        TopologicalSorter({module: graph.find_modules_directly_imported_by(module) for module in graph.modules}).prepare()
    except CycleError as error:
        raise AssertionError(" <- ".join(error.args[1])) from None
