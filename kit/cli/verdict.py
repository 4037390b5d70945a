"""`kit verdict`: two logs of other people's tools, paired by sample."""

from argparse import Namespace
from typing import Any

from kit.cli.measure import MARGIN, margin, margins

_FILE = (
    "a log of Inspect, pydantic-evals, promptfoo or Opik, a table (.csv, .jsonl), or the folder "
    "of a grid's run; FILE#SYSTEM, or FOLDER#WAY, where it holds several"
)


def add(commands: Any) -> None:
    """Adds the command to a parser's."""
    verdict = commands.add_parser(
        "verdict",
        help="two logs, or runs of grids, over the same samples: which is better, and how sure that is",
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
    verdict.add_argument("--margin", action="append", default=[], type=margin, **MARGIN)
    verdict.add_argument(
        "--scale",
        action="append",
        default=[],
        type=scale,
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
        margin=margins(arguments.margin),
        scales=dict(arguments.scale),
        lower=arguments.lower,
        any_look=arguments.any_look,
    )
    if arguments.json:
        print(verdict.model_dump_json(indent=1))
    else:
        print(verdict)
    return 0


def scale(text: str) -> tuple[str, tuple[float, float]]:
    """`SCORE=1:5`. Raises ValueError, which argparse turns into a sentence."""
    score, _, ends = text.rpartition("=")
    least, greatest = map(float, ends.split(":"))
    if not score or least >= greatest:
        raise ValueError(text)
    return score, (least, greatest)
