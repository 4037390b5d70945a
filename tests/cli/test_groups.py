"""The rarer commands stand in two groups."""

import pytest

from kit.cli import main


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
