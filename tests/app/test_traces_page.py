"""The traces page, run by Streamlit's own test driver over a store with real turns."""

import asyncio
import json
import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from kit.core.context import OPERATOR, Principal, Session
from kit.core.record import TurnRecord
from kit.core.trace import trace_of
from kit.settings import Settings
from kit.stores.sqlite import SqliteStore
from kit.ui.traces.export import export
from kit.wire import open_kit
from tests.app.rooms import app_over, button, room, shown, turns_in
from tests.kits import MIXED
from tests.sample_turn import a_turn


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with three turns of one person and one of another."""
    path = tmp_path_factory.mktemp("traces") / "kit.db"

    async def turns() -> None:
        async with open_kit(Settings(store=str(path), pace=0, model="offline"), faults=True) as kit:
            mine = kit.session("mine")
            await kit.ask("How many points do I have?", mine)
            await kit.ask(MIXED, mine, faults=["rewards=foreign_principal"])
            await kit.ask(MIXED, mine, cap=2)
            await kit.ask("How many points do I have?", kit.session("theirs", user="u-002"))

    asyncio.run(turns())
    return path


@pytest.fixture
def page(asked: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[AppTest]:
    with app_over(asked, monkeypatch):
        yield room("traces")


def stored(path: Path, user: str = "u-001") -> list[TurnRecord]:
    return turns_in(path, user_id=user)


def open_turn(page: AppTest, turn: TurnRecord, span: str = "") -> AppTest:
    page.query_params["turn"] = turn.id
    if span:
        page.query_params["span"] = span
    return page.run()


def test_the_list_holds_the_turns_of_who_is_looking_newest_first(page: AppTest, asked: Path):
    page.run()
    table = page.dataframe[0].value
    own = [turn.message for turn in stored(asked)]
    own[1] += " (broken on purpose)"
    assert list(table["Question"]) == own and len(table) == 3
    assert list(table["How it ended"]) == ["2 of 3 answered", "2 of 3 answered", "Answered"]
    assert "3 of 3 turns" in shown(page)
    assert list(table["Pattern"]) == ["Mediated"] * 3
    assert set(table["Model"]) <= {"offline stand-in", ""}
    assert page.multiselect(key="f-patterns").options == ["Mediated"]
    assert page.multiselect(key="f-models").options == ["offline stand-in"]


def test_filters_narrow_the_list_and_say_when_nothing_is_left(page: AppTest):
    page.run()
    page.multiselect(key="f-axes").set_value(["cap"]).run()
    assert len(page.dataframe[0].value) == 1
    page.multiselect(key="f-axes").set_value([])
    page.text_input(key="f-text").set_value("coffee receipt").run()
    assert len(page.dataframe[0].value) == 2
    page.text_input(key="f-text").set_value("zeppelin").run()
    assert not page.dataframe and "Take out a filter" in shown(page)


@pytest.mark.req("PC2-FR-12")
def test_a_blocked_reply_is_said_and_nothing_of_it_is_in_page_or_file(page: AppTest, asked: Path):
    blocked = stored(asked)[1]
    said = shown(open_turn(page, blocked))
    assert "blocked" in said and "verified" in said
    assert "Rewards is sent somebody else's data" in unescape(said), "it was made to fail"
    events = tuple(SqliteStore(asked).events(blocked.id, OPERATOR))
    file = json.loads(export(blocked, events))
    assert {span["id"] for span in file["spans"]} == {span.id for span in trace_of(events).spans}
    assert len(file["events"]) == len(events) and file["routing"]["invoked"] == list(
        blocked.invoked
    )
    foreign = [word for word in ("u-002", "globex") if word in json.dumps(file) or word in said]
    assert not foreign


def test_somebody_elses_trace_cannot_be_opened_by_its_address(page: AppTest, asked: Path):
    theirs = stored(asked, "u-002")[0]
    open_turn(page, theirs)
    assert "no such trace of yours" in shown(page) and len(page.dataframe[0].value) == 3


def test_a_turn_whose_process_died_has_an_explanation(page: AppTest, asked: Path):
    lost = a_turn("lost", "mine", "u-001")
    store = SqliteStore(asked)
    store.open_session(Session(id="mine", principal=Principal(tenant_id="acme", user_id="u-001")))
    store.begin_turn(lost.model_copy(update={"status": "interrupted"}))
    said = shown(open_turn(page, lost))
    assert "Ask it again in the chat" in said
    store.close()


def test_a_trace_says_what_the_turn_waited_for_and_links_to_opik_only_where_there_is_one(
    page: AppTest, asked: Path, monkeypatch: pytest.MonkeyPatch
):
    turn = stored(asked)[2]
    said = shown(open_turn(page, turn))
    # an agent's time holds that of its calls, which stand in brackets behind it
    time = r"[\d.]+ m?s"
    waits = rf"What the turn waited for: deciding {time} → \w+ {time} \(.+ {time}\) → writing the answer {time}"
    assert re.search(waits, said.replace("\\", ""))
    assert not page.get("link_button")


def test_conversations_are_listed_and_one_shows_its_own_turns(page: AppTest, asked: Path):
    page.run()
    lists: Any = page.get("button_group")[0]
    lists.set_value("Conversations").run()
    rows: Any = page.dataframe[0].value
    assert list(rows["First question"]) == [stored(asked)[-1].message] and not page.multiselect
    assert "1 conversation." in shown(page)
    page.query_params["conversation"] = "mine"
    page.run()
    assert "Its newest question" in shown(page) and len(page.dataframe[0].value) == int(
        rows["Turns"][0]
    )
    page.query_params["conversation"] = "theirs"
    page.run()
    assert "no such conversation of yours" in shown(page) and not page.dataframe


def open_at_composing(page: AppTest, asked: Path) -> TurnRecord:
    """Opens the newest turn at the call that worded its answer."""
    turn = stored(asked)[0]
    store = SqliteStore(asked)
    spans = trace_of(store.events(turn.id, OPERATOR)).spans
    store.close()
    composing = next(span for span in spans if span.name.startswith("compose"))
    open_turn(page, turn, composing.id)
    return turn


@pytest.mark.req("K-31")
def test_a_model_call_is_shown_with_every_message_it_was_sent(page: AppTest, asked: Path):
    open_at_composing(page, asked)
    sent = next(
        html.proto.body for html in page.get("html") if 'class="request"' in html.proto.body
    )
    assert sent.count("<details><summary>") == 3, (
        "the stable prompt, the tools and earlier turns are folded"
    )
    for words in (
        "You are the assistant of a shopping app",
        "Date: ",
        "ask_rewards",
        MIXED,
        "→ ask_",
    ):
        assert words in unescape(sent)
    assert '"role": "system"' in "".join(code.value for code in page.code)


@pytest.mark.req("K-32")
def test_a_turn_is_forked_at_the_open_span_and_says_what_was_played(page: AppTest, asked: Path):
    turn = open_at_composing(page, asked)
    failing = next(box for box in page.multiselect if box.label == "Broken on purpose")
    failing.select("Shop fails in the middle of its work")
    button(page, "Fork").click().run()
    assert "stands beside this turn" in " ".join(str(one.value) for one in page.success)
    newest = next(one for one in stored(asked) if one.session_id.startswith(f"again:{turn.id}"))
    page.query_params.clear()
    open_turn(page, newest)
    assert "Shop fails in the middle of its work" in shown(page)
    assert "Forked" in shown(page) and "played, not called" in shown(open_turn(page, newest, "s2"))
