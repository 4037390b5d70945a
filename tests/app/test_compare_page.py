"""The compare page, run by Streamlit's own test driver over a store with real turns."""

import asyncio
import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from kit.conformance.table import Table
from kit.core.context import OPERATOR
from kit.core.simulation import LogNormal
from kit.models.scripted import Line, ScriptedModel
from kit.patterns import PATTERNS
from kit.runtime.turn import run_turn
from kit.settings import Settings
from kit.stores.recall import repeated_turn
from kit.stores.sqlite import SqliteStore
from kit.ui.compare.difference import compare, differences_html, losses_html
from kit.ui.compare.others import RESULT
from kit.ui.shared.turn_fold import advance
from kit.ui.shared.turn_view import TurnView
from kit.wire import open_kit
from tests.app.rooms import app_over, button, room
from tests.kits import ALICE, EMBEDDED, MIXED, classifies, small_kit, stitched

Ids = dict[str, str]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Ids]:
    """A store with a question that was asked whole, with a failing part and by a gateway that heard
    one part of it, and a turn of somebody else."""
    path = tmp_path_factory.mktemp("compare") / "kit.db"
    settings = Settings(store=str(path), pace=0, model="offline")

    async def turns() -> Ids:
        async with open_kit(settings, faults=True) as kit:
            replies = {
                "whole": await kit.ask(MIXED, kit.session("whole")),
                "failing": await kit.ask(MIXED, kit.session("failing"), faults=["rewards=raise"]),
                "capped": await kit.ask(MIXED, kit.session("capped"), cap=2),
                "other": await kit.ask("find coffee deals", kit.session("other")),
                "theirs": await kit.ask(
                    "How many points do I have?", kit.session("theirs", user="u-002")
                ),
            }
        models = classifies("support", "ereceipts", part="My receipt didn't scan")
        async with open_kit(settings, models=models) as kit:
            replies["gateway"] = await kit.ask(
                MIXED, kit.session("gateway"), pattern="classifier_gateway"
            )
        return {name: reply.turn_id for name, reply in replies.items()}

    return path, asyncio.run(turns())


@pytest.fixture
def ids(store: tuple[Path, Ids]) -> Ids:
    return store[1]


@pytest.fixture
def page(store: tuple[Path, Ids], monkeypatch: pytest.MonkeyPatch) -> Iterator[AppTest]:
    with app_over(store[0], monkeypatch):
        yield room("compare")


def open_turns(page: AppTest, *turn_ids: str) -> AppTest:
    page.query_params["turns"] = ",".join(turn_ids)
    page.run()
    assert not page.exception and not page.error
    return page


def html(page: AppTest) -> list[str]:
    """The HTML of the page, without what names a cell on a phone."""
    bodies = [element.proto.body for element in page.get("html")]
    return [re.sub(r' data-head="[^"]*"', "", body) for body in bodies if "<style" not in body]


def text(page: AppTest) -> str:
    """What can be read on it, without marks of HTML."""
    parts = [
        *(str(one.value) for one in (*page.markdown, *page.caption, *page.warning)),
        *html(page),
    ]
    return unescape(re.sub(r"<[^>]+>", "", " ".join(parts)))


def named(page: AppTest) -> list[str]:
    """The turns of the address."""
    value = page.query_params["turns"]
    return (value if isinstance(value, str) else value[0]).split(",")


def canvases(page: AppTest) -> list[str]:
    return [one for one in html(page) if '<section class="canvas' in one]


@pytest.mark.req("K-8")
def test_two_turns_stand_side_by_side_on_one_axis_with_what_differs(page: AppTest, ids: Ids):
    words = text(open_turns(page, ids["whole"], ids["failing"]))
    assert (
        "Way B: Mediated lacks “how many points do I have” (Rewards: had a problem on its side)."
        " Way A: Mediated lacks nothing." in words
    )
    heads = [one for one in html(page) if '<div class="head"' in one]
    assert all("simulated" in one and "token" not in one for one in heads), "no model ran"
    assert "the stand-in counts four characters as a token" in words
    first, second = canvases(page)
    axis = re.compile(r'<div class="lane axis".*?</div>')
    assert axis.findall(first) == axis.findall(second) != []
    assert (
        "Timeline of Way A: Mediated" in first and "get_user_points" in first and "failed" in second
    )
    table = next(one for one in html(page) if 'class="differences"' in one)
    assert (
        "Made to fail" in table
        and '<td><i class="tag good">Answered</i></td>' in table
        and '<td><i class="tag warn">2 of 3 answered</i></td>' in table
    )
    same = words.partition("The same in all: ")[2]
    assert (
        same.startswith("pattern (mediated), model (offline stand-in), limit (4)")
        and "cost ($0)" in same.partition(". ")[0]
    )
    assert (
        sum("4,975 points" in one.value for one in page.markdown) == 1
        and "in the answer's own words" in words
    )


@pytest.mark.req("K-8")
def test_what_a_pattern_lost_in_silence_is_told_from_its_routing(page: AppTest, ids: Ids):
    words = text(open_turns(page, ids["whole"], ids["capped"], ids["gateway"]))
    assert (
        "Way C: Classifier gateway lacks “how many points do I have” and “find coffee deals” (nobody was asked)."
        in words
    ), "it owns up to what it left out"
    table = next(one for one in html(page) if 'class="differences"' in one)
    ends = [table.count(f">{words}</i></td>") for words in ("2 of 3 answered", "2 of 4 answered")]
    assert ends == [1, 1], "in the words of the turns themselves"
    # Which of the three parts is over the cap depends on the stand-in's scores.
    assert re.search(r"Way B: Mediated lacks “[^”]+” \(nobody was asked\)\.", words), (
        "it owns up to the part over the cap"
    )
    assert [canvas.count('<section class="canvas compact">') for canvas in canvases(page)] == [
        1,
        1,
        1,
    ], "small multiples show bars alone"
    assert [tab.label for tab in page.tabs] == [
        "Way A: Mediated",
        "Way B: Mediated",
        "Way C: Classifier gateway",
    ]


def test_turns_of_different_questions_lose_only_what_they_were_asked(page: AppTest, ids: Ids):
    words = text(open_turns(page, ids["failing"], ids["other"]))
    assert (
        "Way A: Mediated lacks “how many points do I have” (Rewards" in words
        and "Way B: Mediated lacks nothing." in words
    )
    assert "find coffee deals" in next(
        one for one in html(page) if "Way B: Mediated</h3>" in one
    ), "each has its question at its head"
    assert "Of the sub-agents" not in words, "turns of two questions are no ways of one"


def test_somebody_elses_turn_is_not_there(page: AppTest, ids: Ids):
    words = text(open_turns(page, ids["theirs"], ids["whole"]))
    assert "not there, or not yours" in words and len(canvases(page)) == 1 and "u-002" not in words
    assert len(page.multiselect[-1].options) == 5


def test_turns_are_chosen_from_a_list_and_the_choice_is_in_the_address(page: AppTest, ids: Ids):
    page.run()
    assert not canvases(page) and len(page.multiselect[0].options) == 5
    page.multiselect[0].set_value([ids["whole"], ids["gateway"]]).run()
    assert page.query_params["turns"] in (
        f"{ids['whole']},{ids['gateway']}",
        [f"{ids['whole']},{ids['gateway']}"],
    )
    assert len(canvases(page)) == 2


@pytest.mark.req("K-8")
def test_a_turn_is_asked_again_on_another_pattern_and_model_beside_the_first(
    page: AppTest, ids: Ids, store: tuple[Path, Ids], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(LogNormal, "quantile", lambda *_: 0.0)  # its seconds are real ones
    open_turns(page, ids["failing"])
    pattern, model, cap = page.selectbox
    assert (pattern.value, model.value, cap.value) == (
        "mediated",
        "offline",
        "4",
    ) and page.multiselect[0].value == ["Rewards fails in the middle of its work"]
    pattern.set_value("direct")
    model.set_value("simulated-gpt-4.1-mini")
    cap.set_value("3")
    page.multiselect[0].set_value([])
    button(page, "Ask again").click().run()
    first, second = named(page)
    assert first == ids["failing"] and len(canvases(page)) == 2
    words = text(page)
    assert (
        "Way A: Mediated asked again" in words
        and "Way A: Mediated lacks “how many points do I have”" in words
        and "Way B: Direct lacks nothing" in words
    )
    kept = SqliteStore(store[0])
    turn = kept.turn(second, OPERATOR)
    assert turn is not None and repeated_turn(turn.session_id) == first
    assert (turn.pattern, turn.model, turn.cap) == ("direct", "simulated-gpt-4.1-mini", 3)
    assert [one.id for one in kept.turns(session_id="failing")] == [first], (
        "its conversation is as it was"
    )
    kept.close()
    traces = room("traces")
    assert "(asked again)" in traces.run().dataframe[0].value["Question"][0]
    traces.query_params["turn"] = second
    assert f"Asked again: first as {first[-8:]}" in text(traces.run())


@pytest.mark.req("K-8")
def test_one_question_runs_on_all_patterns_at_once(page: AppTest, store: tuple[Path, Ids]):
    page.run()
    page.text_input[0].set_value(MIXED)
    button(page, "Ask on all 7 patterns").click().run()
    assert len(named(page)) == 7 == len(canvases(page)) and not page.exception
    assert "lack" not in text(page).replace("lack nothing", "")
    asked = "Of the sub-agents, Support, Rewards and Shop answered in 6 of 7; 1 way asked none."
    assert asked in text(page)
    kept = SqliteStore(store[0])
    turns = [kept.turn(turn_id, OPERATOR) for turn_id in named(page)]
    kept.close()
    assert [turn.pattern for turn in turns if turn] == list(PATTERNS) and len(
        {turn.session_id for turn in turns if turn}
    ) == 7
    # The monolith has looked everything up, and asked no sub-agent: both pages say so.
    assert sum("Used its own tools" in canvas for canvas in canvases(page)) == 1
    rows = room("traces").run().dataframe[0].value
    asked = dict(zip(rows["Pattern"], rows["Sub-agents"], strict=True))
    assert list(asked.pop("Monolith")) == [] and all(map(list, asked.values()))


def test_a_question_with_pictures_that_are_gone_is_not_asked_without_them(
    page: AppTest, store: tuple[Path, Ids]
):
    kept = SqliteStore(store[0])
    whole = kept.turn(store[1]["whole"], OPERATOR)
    assert whole is not None
    kept.begin_turn(
        whole.replace(
            id="pictured",
            session_id="pictured",
            message="[picture: a.png] what is this?",
            status="failed",
        )
    )
    kept.close()
    open_turns(page, "pictured")
    button(page, "Ask again").click().run()
    assert "no longer in memory" in page.error[0].value and len(named(page)) == 1


def test_one_line_says_who_was_asked_and_in_how_many_ways_each_answered(page: AppTest, ids: Ids):
    words = text(open_turns(page, ids["whole"], ids["failing"], ids["capped"]))
    assert (
        "Of the sub-agents, Support and Shop answered in all 3;"
        " Rewards answered in 1 of 3 and failed in 1 of 3."
    ) in words
    words = text(open_turns(page, ids["whole"]))
    assert "Way A: Mediated lacks nothing." in words and "Of the sub-agents" not in words
    assert not any("What differs" in one for one in html(page)), "a turn alone differs from none"


async def test_a_sub_agent_that_failed_in_one_of_its_two_parts_lost_one():
    lead = Line(
        calls=[("ask_a", {"query": part, "intent_count": 2}) for part in ("points", "shoes")]
    )
    kit = small_kit(
        [lead, stitched], {"a": ScriptedModel(Line("120 points."), Line(error=OSError()))}
    )
    half = advance(TurnView(), (await run_turn("points and shoes", ALICE, kit)).events)
    (part,) = compare({"A": half})["A"]
    assert part.reason == "had a problem on its side"


@pytest.mark.req("K-36")
def test_a_failed_turn_stands_beside_a_plain_loop_and_the_stored_table(page: AppTest, ids: Ids):
    open_turns(page, ids["whole"], ids["failing"])
    button(page, "What other systems would have said").click().run()
    assert page.query_params["others"] == ids["failing"]
    words = text(page)
    assert "Rewards failed, and the answer says so" in words
    assert "No answer at all. It raised ChildError" in words
    assert "Rewards lost: the text of an exception in its place" in words
    outlined = re.findall(r'<li class="lost-part"><b>(\w+)</b>', " ".join(html(page)))
    assert outlined == ["Support", "Rewards", "Shop", "Rewards"]
    assert "One of three raises an error. What each of 10 systems said" in words
    stored = Table.read(RESULT)
    assert f"From the stored table of {stored.content['date']}" in words
    for system in stored.systems:
        assert system["name"] in words


def test_the_name_of_a_turn_is_never_markup():
    first = TurnView(pattern="of_a_deck", status="ok")
    turns = {"<i>mine</i>": first, "B": TurnView(pattern="direct", status="failed")}
    html = differences_html(turns)
    assert "&lt;i&gt;mine&lt;/i&gt;" in html and "<i>mine" not in html


def losses(turns: dict[str, TurnView]) -> str:
    html = losses_html(compare(turns), turns, running=False)
    return re.sub("<[^>]+>", "", html).strip()


async def test_where_a_fault_had_no_part_in_a_turn_the_comparison_says_so():
    """A service that fails whoever asks it has spared no turn."""
    question = "how many points do I have, and find coffee deals"
    turns: dict[str, TurnView] = {}
    foreign: dict[str, TurnView] = {}
    async with open_kit(EMBEDDED, faults=True) as kit:
        for fault, views in (("raise", turns), ("foreign_principal", foreign)):
            for pattern in ("mediated", "monolith"):
                faults = [f"rewards={fault}"]
                reply = await kit.ask(question, kit.session(pattern), pattern, faults=faults)
                views[pattern] = advance(TurnView(question=question), reply.events)
    who = (
        "Of the sub-agents, Shop answered in 1 of 2; Rewards failed in 1 of 2; 1 way asked none.\n"
    )
    assert losses(turns) == (
        f"{who}mediated lacks “how many points do I have” (Rewards: had a problem on its side)."
        " monolith lacks nothing."
        " Rewards was made to fail in 1 of 2; in monolith nobody asked Rewards, so nothing was broken there"
        " and it is no fair winner."
    )
    rows = re.findall(r'<tr><th scope="row">.*?</tr>', differences_html(turns))
    assert ["nothing was broken" in row for row in rows] == [False, True]
    assert "one agent with every tool" in rows[1], "a name that nobody knows is explained"
    assert losses(foreign) == (
        f"{who}mediated and monolith lack “how many points do I have”"
        " (Rewards: its data could not be confirmed as yours)."
    )
