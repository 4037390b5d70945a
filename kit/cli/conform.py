"""`kit conform`: a system of anybody's through the scenarios in which a part of a turn fails."""

import json
from argparse import Namespace
from typing import Any


def add(commands: Any) -> None:
    """Adds the command to a parser's."""
    conform = commands.add_parser(
        "conform", help="play a system through turns in which a part fails (docs/conformance.md)"
    )
    conform.add_argument("system", metavar="FILE.py:NAME", help="an async function of one task")
    conform.add_argument("--only", help="scenarios, with commas between them; all without it")
    conform.add_argument(
        "--best", action="store_true", help="say to the system that task.best is true"
    )
    conform.add_argument(
        "--python", help="the interpreter that has the system's packages; this one without it"
    )
    conform.add_argument("--json", action="store_true", help="print JSON, with what the user read")
    conform.set_defaults(run=_conform)


def _conform(arguments: Namespace) -> int:
    import sys

    from kit.conformance.play import play_system
    from kit.conformance.scenario import BY_ID, COMPOSERS

    scenarios = tuple(BY_ID)
    if arguments.only:
        scenarios = _scenarios(arguments.only.split(","))
    result = play_system(
        arguments.system,
        scenarios,
        configurations=(arguments.best,),
        python=arguments.python or sys.executable,
    )
    passes = [cell for cell in result.cells if cell.judgement.verdict == "pass"]
    if arguments.json:
        print(json.dumps(result.as_json(), indent=2, ensure_ascii=False))
    else:
        for composer, manner in COMPOSERS.items():
            print(f"The {composer} composer {manner}:")
            for cell in result.cells:
                if cell.composer == composer:
                    line = (
                        f"  {cell.judgement.verdict:4}  {cell.scenario:16}  {cell.judgement.word}"
                    )
                    print(line.rstrip())
        print(f"{len(passes)} of {len(result.cells)} plays pass")
    return int(len(passes) < len(result.cells))


def _scenarios(names: list[str]) -> tuple[str, ...]:
    from kit.conformance.scenario import BY_ID
    from kit.core.errors import UnknownId

    for name in names:
        if name not in BY_ID:
            raise UnknownId("scenario", name, BY_ID)
    return tuple(names)
