"""`kit verdict`: two logs of other people's tools, paired by sample."""

from argparse import Namespace
from collections.abc import Sequence
from typing import Any

from kit.core.errors import SettingsError

_FILE = (
    "a log of Inspect, pydantic-evals, promptfoo or Opik, or a table (.csv, .jsonl); "
    "FILE#SYSTEM where it holds several systems"
)


def add(commands: Any) -> None:
    """Adds the command to a parser's."""
    verdict = commands.add_parser(
        "verdict",
        help="two logs of other tools over the same samples: which is better, and how sure that is",
    )
    verdict.add_argument("first", metavar="A", help=_FILE)
    verdict.add_argument("second", metavar="B", help="the log that is set beside it")
    verdict.add_argument(
        "--by",
        action="append",
        default=[],
        metavar="SCORE",
        help="a score, or seconds or cost (default: every score that is a number)",
    )
    verdict.add_argument(
        "--margin",
        action="append",
        default=[],
        metavar="D",
        help="the difference too small to matter: 0.05 of every score, or SCORE=D",
    )
    verdict.add_argument(
        "--scale",
        action="append",
        default=[],
        metavar="SCORE=LOW:HIGH",
        help="the least and the greatest of a score that is not from 0 to 1",
    )
    verdict.add_argument(
        "--lower",
        action="append",
        default=[],
        metavar="SCORE",
        help="a score of which less is better",
    )
    verdict.add_argument(
        "--cluster",
        metavar="FIELD",
        help="the field of a sample's metadata, or the column, that says which samples belong together",
    )
    verdict.add_argument(
        "--any-look",
        action="store_true",
        help="you looked at these logs before they were this long: the verdict holds at every look",
    )
    verdict.add_argument("--json", action="store_true", help="the verdict as one JSON object")
    verdict.set_defaults(run=_verdict)


def _verdict(arguments: Namespace) -> int:
    from kit.bench.logs.log_verdict import compare_logs
    from kit.bench.logs.reading import read_log

    verdict = compare_logs(
        read_log(arguments.first, arguments.cluster),
        read_log(arguments.second, arguments.cluster),
        arguments.by,
        margin=_margin(arguments.margin),
        scales=_scales(arguments.scale),
        lower=arguments.lower,
        any_look=arguments.any_look,
    )
    if arguments.json:
        print(verdict.model_dump_json(indent=1))
    else:
        print(verdict)
    return 0


def _margin(texts: Sequence[str]) -> float | dict[str, float] | None:
    """One figure is that of every score, others are by score."""
    margins: dict[str, float] = {}
    for text in texts:
        score, _, figure = text.rpartition("=")
        margins[score] = _figure(figure, "--margin", "0.05 or SCORE=0.05")
        if margins[score] <= 0:
            raise SettingsError("--margin is greater than 0: a difference below it does not matter")
    if "" not in margins:
        return margins or None
    if len(texts) > 1:
        raise SettingsError("--margin is one figure for every score, or SCORE=D for each")
    return margins[""]


def _scales(texts: Sequence[str]) -> dict[str, tuple[float, float]]:
    scales: dict[str, tuple[float, float]] = {}
    for text in texts:
        score, _, ends = text.rpartition("=")
        low, _, high = ends.partition(":")
        least = _figure(low, "--scale", "SCORE=1:5")
        greatest = _figure(high, "--scale", "SCORE=1:5")
        if not score or least >= greatest:
            raise SettingsError(
                f"--scale is written SCORE=1:5, the least before the greatest, not {text!r}"
            )
        scales[score] = (least, greatest)
    return scales


def _figure(text: str, option: str, form: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise SettingsError(f"{option} is written {form}; {text!r} is no number") from error
