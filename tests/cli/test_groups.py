"""The rarer commands stand in two groups; the names they had before work still."""

import pytest

from kit.cli import command_parser, main

EARLIER = {
    ("gained", "a", "b"): ("cards", "gained", "a", "b"),
    ("promote", "shop"): ("cards", "promote", "shop"),
    ("schema",): ("cards", "schema"),
    ("deck-routing",): ("cards", "routing"),
    ("metrics", "--json"): ("data", "metrics", "--json"),
    ("drift", "sheet.jsonl"): ("data", "drift", "sheet.jsonl"),
    ("cases", "out.jsonl"): ("data", "cases", "out.jsonl"),
    ("forget", "u-001"): ("data", "forget", "u-001"),
}


@pytest.mark.parametrize(("earlier", "grouped"), EARLIER.items(), ids=lambda words: " ".join(words))
def test_an_earlier_name_does_what_the_command_of_the_group_does(
    earlier: tuple[str, ...], grouped: tuple[str, ...]
):
    parser = command_parser()
    assert parser.parse_args(earlier) == parser.parse_args(grouped)


def test_the_help_lists_the_groups_and_none_of_the_earlier_names():
    words = command_parser().format_help()
    assert "\n    cards " in words
    assert "\n    data " in words
    for name, *_ in EARLIER:
        assert f"\n    {name} " not in words


@pytest.mark.parametrize(
    ("mistyped", "hint"),
    [
        (["aks", "hi"], "unknown command 'aks': did you mean 'ask'?"),
        (["data", "metrcis"], "unknown command 'metrcis': did you mean 'metrics'?"),
        (["metrcis"], "unknown command 'metrcis': did you mean 'data metrics'?"),
        (["evolve", "xyzzy"], "unknown command 'xyzzy'"),
    ],
)
def test_a_mistyped_command_gets_the_near_one_and_those_of_the_help(
    mistyped: list[str], hint: str, capsys: pytest.CaptureFixture[str]
):
    with pytest.raises(SystemExit) as stopped:
        main(mistyped)
    said = " ".join(capsys.readouterr().err.split())
    assert stopped.value.code == 2 and hint in said and "the commands are " in said
