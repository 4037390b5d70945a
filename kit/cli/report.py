"""`kit report`: a stored run as one HTML file to hand in."""

from argparse import Namespace
from pathlib import Path
from typing import Any


def add(commands: Any) -> None:
    """Adds the command to a parser's."""
    report = commands.add_parser(
        "report",
        help="a run of a grid as one HTML file to hand in, figures and wrong cases included",
    )
    report.add_argument("folder", type=Path, metavar="RUN", help="the folder that a grid wrote")
    report.add_argument(
        "-o", "--out", type=Path, metavar="FILE.html", help="default: report.html in that folder"
    )
    report.add_argument(
        "--figures", type=Path, metavar="FOLDER", help="write the figures there too, as PDF and SVG"
    )
    report.set_defaults(run=_report)


def _report(arguments: Namespace) -> int:
    from kit.bench.run_page.page import write_page

    out = arguments.out or arguments.folder / "report.html"
    write_page(arguments.folder, out, arguments.figures)
    print(f"report in {out}")
    return 0
