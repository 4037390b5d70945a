"""A run as one HTML file to hand in: it says what was found and how, holds all it shows, and nothing
that a model, a case or an error said can act in it."""

import hashlib
import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from kit import ExperimentKits, Settings, compare
from kit.bench.grid.run import CASES, PROVENANCE, RESULTS
from kit.core.model import ModelSpec
from kit.core.outcome import AgentCall, Answer, Outcome
from kit.core.simulation import Law
from kit.home import HOME
from kit.patterns.agents_as_tools import run_mediated
from kit.runtime.context import RunContext
from tests.cli.test_cli import refused
from tests.cli.test_cli import run as kit

EXAMPLE = HOME / "data" / "results" / "reference" / "patterns_example"
ATTACK = "<script>alert(1)</script><img src=x onerror=alert(2)>"


class Page(HTMLParser):
    """What a browser makes of a page: its elements, and its text without them."""

    def __init__(self, path: Path):
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.source = path.read_text(encoding="utf-8")
        self.feed(self.source)
        self.words = " ".join(self.text.split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.text += " "
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.text += data


def page_of(folder: Path, *options: str) -> Page:
    out = folder.parent / f"{folder.name}.html"
    result = kit("report", str(folder), "-o", str(out), *options)
    assert result.returncode == 0, result.stderr
    return Page(out)


async def mine(call: AgentCall, ctx: RunContext) -> Outcome:
    """A system that answers with an attack, and asks as the others do."""
    await run_mediated(call, ctx)
    return Answer(agent=call.agent, call_id=call.call_id, text=f"the answer {ATTACK}")


def kept(_: object, observation: Any) -> float:
    """A judge of one's own: such grids keep their turns."""
    return float("alert" not in observation.text)


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("attacked")
    law = Law(drop=1.0, under_report=1.0)
    result = compare(
        [ModelSpec(key="simulated-$m$<b>", provider="simulated", law=law)],
        [
            {
                "id": f"case-{i}<i>",
                "user": f"how many points do I have {i} {ATTACK}, and find coffee deals",
                "expected_sub_agents": ["rewards", "shop"],
            }
            for i in range(8)
        ],
        patterns=["mediated", mine],
        judges=[kept],
        baseline={"pattern": "mediated"},
        kits=ExperimentKits.of(Settings(store=str(folder / "kit.db")), virtual=True),
    )
    copy = folder / "run"
    shutil.copytree(result.run.folder, copy)
    row = json.loads((copy / RESULTS).read_text().splitlines()[0])
    failure = {**row, "turns": 1, "error_class": "network", "error": f"no route {ATTACK}"}
    (copy / "failures.jsonl").write_text(json.dumps(failure) + "\n")
    return copy


@pytest.fixture(scope="module")
def page(attacked: Path) -> Page:
    return page_of(attacked)


@pytest.mark.realtime
def test_nothing_that_was_said_acts_in_the_page(page: Page):
    assert not page.tags & {"script", "img", "iframe", "object", "b", "i", "link"}
    assert not [name for name, _ in page.attributes if name.startswith("on")]
    # Message, answer and error stand there, as text.
    for words in ("points do I have 0", "the answer", "no route"):
        assert f"{words} {ATTACK}" in page.words
    assert "simulated-$m$<b>" in page.words and "case-0<i>" in page.words


@pytest.mark.realtime
def test_the_page_fetches_nothing(page: Page):
    addresses = [
        value for name, value in page.attributes if name in ("src", "href", "xlink:href", "action")
    ]
    # Within a figure one part points at another.
    assert addresses and all(value and value.startswith("#") for value in addresses)
    assert "url(http" not in page.source and "@import" not in page.source


@pytest.mark.realtime
def test_wrong_cases_say_what_was_asked_expected_and_answered(attacked: Path, page: Page):
    dates = json.loads((attacked / PROVENANCE).read_text())["runs"]["1"]["date"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", dates) and f"Played on {dates}" in page.words
    wrong = re.search(r"mine: (\d+) of 8 turns", page.words)
    assert wrong is not None and int(wrong[1]) > 0
    assert "For rewards, shop Asked" in page.words
    assert "network 1, such as no route" in page.words


def test_verdicts_methods_and_a_digest_to_cite_are_on_the_page(tmp_path: Path):
    folder = tmp_path / "run"
    shutil.copytree(EXAMPLE, folder)
    page = page_of(folder, "--figures", str(tmp_path / "figures"))
    assert "supervisor cannot be told apart from mediated. exact: supervisor 0.851" in page.words
    assert "exact Beside mediated: 6 cannot be told apart." in page.words
    assert "seconds (less is better) Beside mediated: 2 better, 4 worse." in page.words
    assert "direct is better than mediated. seconds: direct 4.852 against" in page.words
    assert (
        "paired by 67 items; p = 0.103 after Holm: cannot tell: from 27.8 points lower"
        in page.words
    )
    # In the example a peer reads as much as a sub-agent of the same process.
    alike = "+0.000 (the same in each; up to 4.4 % of all may differ, by any amount), paired by 67"
    assert f"difference {alike}" in page.words
    assert "Clopper, C. J. and Pearson, E. S. (1934)" in page.words
    for name in ("Wilson 1927", "Bonett and Price 2012", "mid-p-value", "Holm 1979", "Fisher 1935"):
        assert name in page.words
    cited = hashlib.sha256((folder / RESULTS).read_bytes() + (folder / PROVENANCE).read_bytes())
    assert f"sha256:{cited.hexdigest()}" in page.words
    assert page.source.count("<svg") == 3
    assert len(list((tmp_path / "figures").iterdir())) == 3 * 2
    assert (tmp_path / "figures" / "shares.pdf").read_bytes().startswith(b"%PDF")
    # What was not kept is said, and not made up.
    assert not (folder / CASES).exists()
    assert "The day it was played is not recorded" in page.words
    assert "not known" in page.words and "simulated: no claim about a real model" in page.words
    assert "Message" not in page.words
    assert page_of(folder).source == page.source, "a run gives the same page each time"


def test_a_way_that_lost_cells_has_no_verdict_and_the_bounds_of_its_figure(tmp_path: Path):
    folder = tmp_path / "run"
    shutil.copytree(EXAMPLE, folder)
    rows = [json.loads(line) for line in (folder / RESULTS).read_text().splitlines()]
    lost = [row for row in rows if row["pattern"] == "direct"][:5]
    failures = [{**row, "turns": 1, "error_class": "network", "error": "gone"} for row in lost]
    for name, lines in (
        (RESULTS, [row for row in rows if row not in lost]),
        ("failures.jsonl", failures),
    ):
        (folder / name).write_text("".join(json.dumps(line) + "\n" for line in lines))
    page = page_of(folder)
    assert "Beside mediated: 5 cannot be told apart, 1 cannot be compared. " in page.words
    lost_cells = "of the completed: no verdict, 5 of 67 cells failed here"
    assert "direct cannot be compared with mediated. exact: direct 0.984" in page.words
    assert lost_cells in page.words
    bounds = r"of 62; 5 failed: 9\d\.\d % of all, up to 9\d\.\d % had the failed ones been right"
    assert re.search(bounds, page.words)


@pytest.mark.realtime
def test_a_whole_systems_wrong_case_shows_the_text_that_was_expected_and_its_own(tmp_path: Path):
    (tmp_path / "mine.py").write_text(
        "async def answer(message):\n    return f'<b>{message}</b>'\n"
    )
    (tmp_path / "cases.csv").write_text(
        "message,expected_text\nsay hello,hello\nhello you,friend\n"
    )
    out = tmp_path / "out"
    mine = f"{tmp_path / 'mine.py'}:answer"
    played = kit("bench", mine, str(tmp_path / "cases.csv"), "--out", str(out))
    assert played.returncode == 0, played.stderr
    page = page_of(out)
    assert "Message hello you Expected friend Answer <b>hello you</b>" in page.words
    # Nothing is said of whom it asked, where it does not say so.
    assert "Asked" not in page.words and "System" in page.words


def test_a_folder_without_results_and_a_place_that_cannot_be_written_end_in_a_sentence(
    tmp_path: Path,
):
    refused(kit("report", str(tmp_path)), "no grid wrote its results to")
    out = tmp_path / "none" / "report.html"
    refused(kit("report", str(EXAMPLE), "-o", str(out)), "report.html cannot be written")
