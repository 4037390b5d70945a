"""The rarer commands stand in two groups."""

import pytest

from kit.cli import main

EARLIER = {
    "gained": "cards gained",
    "promote": "cards promote",
    "schema": "cards schema",
    "deck-routing": "cards routing",
    "metrics": "data metrics",
    "drift": "data drift",
    "cases": "data cases",
    "forget": "data forget",
    "metrcis": "data metrics",
}
"""What somebody types from memory, without the group -> the name of the command."""


@pytest.mark.parametrize(
    ("mistyped", "hint"),
    [
        (["aks", "hi"], "unknown command 'aks': did you mean 'ask'?"),
        (["data", "metrcis"], "unknown command 'metrcis': did you mean 'metrics'?"),
        (["evolve", "xyzzy"], "unknown command 'xyzzy'"),
    ],
)
def test_a_mistyped_command_gets_the_near_one_and_all_that_there_are(
    mistyped: list[str], hint: str, capsys: pytest.CaptureFixture[str]
):
    with pytest.raises(SystemExit) as stopped:
        main(mistyped)
    said = " ".join(capsys.readouterr().err.split())
    assert stopped.value.code == 2 and hint in said and "the commands are " in said


@pytest.mark.parametrize(("typed", "name"), EARLIER.items())
def test_a_command_of_a_group_that_is_typed_without_it_is_answered_with_its_name(
    typed: str, name: str, capsys: pytest.CaptureFixture[str]
):
    with pytest.raises(SystemExit) as stopped:
        main([typed, "x"])
    said = " ".join(capsys.readouterr().err.split())
    assert stopped.value.code == 2
    assert f"unknown command {typed!r}: did you mean {name!r}?" in said
