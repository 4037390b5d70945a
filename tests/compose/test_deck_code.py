"""A deck brings patterns, guards and pages of its own: the code of docs/own_patterns.md, outside the checkout."""

import pickle
import re
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from streamlit.testing.v1 import AppTest

from kit import Kit, Reply, Settings, open_kit
from kit.bench.grid.cell import cells
from kit.bench.grid.grid_file import read_grid
from kit.bench.promotion import obstacles
from kit.compose.deck import load_deck
from kit.core.bodies.call import ModelStarted
from kit.core.bodies.guard import GuardActed
from kit.core.errors import CodeError, DeckError
from kit.models.scripted import Line, ScriptedModel
from kit.settings import HOME
from tests.app.rooms import app_over, button, room, shown
from tests.app.test_compare_page import named
from tests.cli.test_cli import refused, run
from tests.kits import asks, bodies, stitched

PAGE = (HOME / "docs/own_patterns.md").read_text()
"""The how-to; its three pieces of Python are the files of the deck."""
PATTERNS, GUARDS, PAGES = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
CARDS: dict[str, dict[str, Any]] = {
    "lead": {"description": "Passes each question on.", "sub_agents": ["desk", "stores"]},
    "desk": {"description": "Knows the printers of the office."},
    "stores": {"description": "Knows what lies in the cellar."},
}
TOLD = {"desk": "The printer is on floor 3.", "stores": "Four boxes of paper."}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The deck's folder, with the deck.yaml of the how-to."""
    deck = tmp_path / "deck"
    (tmp_path / "blocks").mkdir()
    deck.mkdir()
    (tmp_path / "models.yaml").write_text("{}\n")
    for name, fields in CARDS.items():
        card = {"id": name, "model": "offline", **fields}
        (deck / f"{name}.yaml").write_text(yaml.safe_dump(card))
    for name, text in (("patterns", PATTERNS), ("guards", GUARDS), ("pages", PAGES)):
        (deck / f"{name}.py").write_text(text)
    sections = PAGE.split("```yaml\n")[1].split("```")[0]
    (deck / "deck.yaml").write_text(f"orchestrator: lead\nrequired_blocks: []\n{sections}")
    return deck


def declare(folder: Path, **sections: object) -> None:
    """Writes deck.yaml anew with these sections alone."""
    fields = {"orchestrator": "lead", "required_blocks": [], **sections}
    (folder / "deck.yaml").write_text(yaml.safe_dump(fields, sort_keys=False))


def kit_of(folder: Path) -> Any:
    """A kit over the deck, whose orchestrator asks both sub-agents whatever is asked."""
    models = {agent: ScriptedModel(lambda _, agent=agent: Line(TOLD[agent])) for agent in TOLD}
    lead = ScriptedModel(asks("desk", "stores"), stitched)
    settings = Settings(store=":memory:", deck=folder, pace=0.0, today="2026-11-01")
    return open_kit(settings, models={"lead": lead, **models})


async def ask(folder: Path, message: str, pattern: str | None = None) -> tuple[Kit, Reply]:
    async with kit_of(folder) as kit:
        return kit, await kit.ask(message, kit.session("s"), pattern)


# Patterns


def test_a_pattern_that_nobody_brought_is_named_with_those_of_the_deck(folder: Path):
    wrong = run("ask", "where is the printer?", "--pattern", "polit", KIT_DECK=str(folder))
    refused(wrong, "unknown pattern 'polit': did you mean 'polite'")


async def test_a_turn_of_an_own_pattern_is_forked_and_asked_by_it(folder: Path):
    settings = Settings(store=":memory:", deck=folder, pace=0.0, model="offline")
    async with open_kit(settings) as kit:
        first = await kit.ask("where is the printer?", kit.session("s"))
        decided = next(event for event in first.events if isinstance(event.body, ModelStarted))
        other = await kit.fork(first.turn_id, decided.span_id, pattern="polite")
        assert other.text == f"{first.text} Ask me anything else."
        again = await kit.fork(other.turn_id, decided.span_id)
        assert (again.text, again.routing.pattern) == (other.text, "polite")


def test_a_grid_compares_it_and_an_edit_of_it_makes_other_cells(folder: Path):
    cases = folder.parent / "cases.jsonl"
    cases.write_text(
        '{"id": "a", "user": "where is the printer?", "expected_sub_agents": ["desk"]}\n'
    )
    grid = folder.parent / "grid.yaml"
    fields = {
        "name": "own",
        "deck": "deck",
        "models": ["offline"],
        "patterns": ["mediated", "polite"],
        "cases": [{"file": "cases.jsonl"}],
    }
    grid.write_text(yaml.safe_dump(fields))

    def keys() -> dict[str, str]:
        return {cell.pattern: cell.key for cell in cells(read_grid(grid))}

    before = keys()
    (folder / "patterns.py").write_text(PATTERNS.replace("anything else", "more"))
    after = keys()
    assert before["mediated"] == after["mediated"] and before["polite"] != after["polite"]
    (folder / "guards.py").write_text(GUARDS.replace("!= 1", "!= 2"))
    assert keys()["mediated"] != after["mediated"]


def test_a_name_of_the_kit_is_not_given_away_twice(folder: Path):
    (folder / "patterns.py").write_text(PATTERNS.replace("polite", "mediated"))
    declare(folder, patterns="./patterns.py:mediated")
    refused(run("check", str(folder)), "deck.yaml:3: 'mediated' is the name of one of the kit's")


def test_a_pattern_may_be_a_value_and_a_file_means_its_patterns(folder: Path):
    more = (
        "from kit.runtime.pattern import Pattern\n"
        "PATTERNS = {'kind': Pattern('other', polite, has_failsafe=True)}\n"
    )
    (folder / "patterns.py").write_text(PATTERNS + more)
    declare(folder, patterns="./patterns.py")
    answer = run("ask", "where is the printer?", "--pattern", "kind", KIT_DECK=str(folder))
    # The card has no tool, so that nobody can help; the pattern has its say all the same.
    assert "Ask me anything else." in answer.stdout


@pytest.mark.parametrize(
    "line", ["return 'All went well.'", "return Answer(text='All went well.')"]
)
async def test_a_pattern_that_breaks_costs_no_answer_and_its_developer_is_told(
    folder: Path, line: str, caplog: pytest.LogCaptureFixture
):
    """The second breaks in a library that it calls: an answer says whose it is."""
    code = f"{PATTERNS}\n\nasync def odd(call, ctx):\n    await polite(call, ctx)\n    {line}\n"
    (folder / "patterns.py").write_text(code)
    declare(folder, patterns="./patterns.py:odd")
    _, reply = await ask(folder, "printers, and paper", "odd")
    assert reply.status == "ok" and TOLD["desk"] in reply.text and "went well" not in reply.text
    (told,) = [line.getMessage() for line in caplog.records if line.name == "kit.turn"]
    assert "'odd' returned a value of type str" in told or "call_id" in told


def test_a_card_may_go_live_in_a_deck_with_code_of_its_own(folder: Path):
    """Wherever the command is given: the code lies beside deck.yaml."""
    (folder / "patterns.py").write_text(PATTERNS)
    declare(folder, patterns="./patterns.py:polite")
    deck = load_deck(folder)
    assert obstacles(deck, deck.cards["desk"]) == []


# Guards


async def test_a_guard_of_the_deck_acts_on_the_first_decision(folder: Path):
    _, both = await ask(folder, "printers, and paper")
    assert {TOLD["desk"], TOLD["stores"]} <= set(re.findall(r"[A-Z][^.]*\.", both.text))
    _, reply = await ask(folder, "is it the printers, or the paper in the cellar?")
    acted = bodies(reply, GuardActed)
    assert [(act.guard, act.agent) for act in acted] == [("one_desk", "stores")]
    assert TOLD["stores"] not in reply.text and reply.routing.refused == ("stores",)


async def test_a_guard_that_raises_is_named_to_its_developer(
    folder: Path, caplog: pytest.LogCaptureFixture
):
    (folder / "guards.py").write_text("def broken(decision, call, ctx):\n    return {}['x']\n")
    declare(folder, guards={"own": "./guards.py:broken"})
    await ask(folder, "printers, and paper")
    told = [line.getMessage() for line in caplog.records if line.name == "kit.turn"]
    assert any("guard 'broken' raised KeyError: 'x'" in line for line in told)


async def test_a_guard_may_be_async_and_stands_beside_switches_of_the_kit(folder: Path):
    (folder / "guards.py").write_text(GUARDS.replace("def one_desk", "async def one_desk"))
    declare(folder, guards={"overlap": False, "own": "./guards.py:one_desk"})
    kit, reply = await ask(folder, "is it the printers, or the paper in the cellar?")
    assert reply.routing.refused == ("stores",)
    assert not kit.deck.settings.guards.overlap and kit.deck.settings.guards.echo
    declare(folder, guards=False)
    _, reply = await ask(folder, "is it the printers, or the paper in the cellar?")
    assert reply.routing.refused == ()


@pytest.mark.parametrize(
    "line", ["return None", "raise RuntimeError('no network')", "raise SystemExit('no network')"]
)
async def test_a_guard_that_breaks_ends_the_turn_in_plain_words_and_its_developer_is_told(
    folder: Path, line: str, caplog: pytest.LogCaptureFixture
):
    (folder / "guards.py").write_text(f"def one_desk(decision, call, ctx):\n    {line}\n")
    _, reply = await ask(folder, "printers, and paper")
    assert reply.status == "failed" and reply.text and "Error" not in reply.text
    (told,) = [line.getMessage() for line in caplog.records if line.name == "kit.turn"]
    assert ": no network" in told or "guard 'one_desk' returned" in told


# Pages


def open_page(folder: Path, monkeypatch: pytest.MonkeyPatch) -> AppTest:
    """The deck's page as the app draws it."""
    monkeypatch.setenv("KIT_DECK", str(folder))
    monkeypatch.setenv("KIT_STORE", ":memory:")
    # The page becomes this process' main module, which a child process of a later test would run.
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])

    def page() -> None:
        from kit.ui.shared.frame import deck_pages

        deck_pages()["turns_today"]()

    return AppTest.from_function(page, default_timeout=300).run()


def test_a_page_of_the_deck_is_drawn_and_listed_by_the_app(
    folder: Path, monkeypatch: pytest.MonkeyPatch
):
    drawn = open_page(folder, monkeypatch)
    assert not drawn.exception and [metric.label for metric in drawn.metric] == ["Turns"]
    app = AppTest.from_file(str(HOME / "app.py"), default_timeout=300).run()
    assert not app.exception
    assert app.session_state["pages"]["own-turns_today"].title == "Turns today"


def test_a_page_that_cannot_be_imported_says_why(folder: Path, monkeypatch: pytest.MonkeyPatch):
    (folder / "pages.py").write_text("def turns_today(:\n")
    drawn = open_page(folder, monkeypatch)
    assert "line 1" in drawn.error[0].value and "correct it" in drawn.error[0].value


# What cannot be used


@pytest.mark.parametrize(
    ("section", "code", "fault"),
    [
        ("patterns", "def polite(call, ctx): ...", "'polite' .* is no pattern; give an async"),
        ("patterns", "polite = 4", "holds a value of type int; give functions"),
        ("patterns", "async def mine(call, ctx): ...", "has no 'polite'"),
        ("guards", "one_desk = print", None),
        ("guards", "def one_desk(decision): ...", r"cannot be called as \(decision, call, ctx\)"),
        ("pages", "def turns_today(host): ...", r"cannot be called as \(\)"),
        ("pages", "async def turns_today(): ...", "is async"),
        ("pages", "turns_today = [print]", "name each page by a reference of its own"),
    ],
)
def test_what_cannot_be_used_is_a_fault_with_its_line_and_fix(
    folder: Path, section: str, code: str, fault: str | None
):
    (folder / f"{section}.py").write_text(code + "\n")
    if fault is None:
        load_deck(folder)
        return
    line = {"patterns": 3, "guards": 4, "pages": 5}[section]
    with pytest.raises(DeckError, match=rf"deck\.yaml:{line}: .*{fault}"):
        load_deck(folder)


def test_the_second_reference_of_a_name_is_named_with_the_first(folder: Path):
    declare(folder, guards={"own": ["./guards.py:one_desk", "./guards.py:one_desk"]})
    with pytest.raises(DeckError, match=r"deck\.yaml:6: guard 'one_desk' .* is there already"):
        load_deck(folder)


def test_check_names_the_code_before_it_is_imported(folder: Path):
    lines = run("check", str(folder)).stdout.splitlines()
    imported = [line.split()[1] for line in lines if line.startswith("imports ")]
    assert imported == ["./patterns.py:polite", "./guards.py:one_desk", "./pages.py:turns_today"]


def test_a_deck_with_code_of_its_own_crosses_to_another_process(folder: Path):
    deck = pickle.loads(pickle.dumps(load_deck(folder)))
    assert list(deck.code.patterns) == ["polite"] and list(deck.code.guards) == ["one_desk"]


def test_settings_in_python_are_held_to_the_same(folder: Path):
    from kit.compose.deck import Deck, DeckSettings

    settings = DeckSettings(orchestrator="lead", required_blocks=(), guards=["nowhere:guard"])  # pyright: ignore
    with pytest.raises(CodeError, match="`guards:` of the deck: no module 'nowhere'"):
        Deck.of([], settings=settings)


@pytest.mark.realtime
@pytest.mark.req("K-8")
def test_a_question_for_all_patterns_is_asked_on_the_decks_own_too(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    store = tmp_path / "kit.db"
    with app_over(store, monkeypatch, DECK=folder):
        page = room("compare").run()
        page.text_input[0].set_value("where is the printer?")
        button(page, "Ask on all 8 patterns").click().run()
        asked = named(page)
        assert len(asked) == 8 and "Way H: Polite" in shown(page)
        # The first of them is asked once more on all: nine turns stand beside each other.
        page.query_params["turns"] = asked[0]
        page.run()
        button(page, "On all 8 patterns").click().run()
        assert len(named(page)) == 9 and "Way I: Polite" in shown(page)
