"""How a turn ended is said in the same words in the chat, the panel, the trace, the list, Compare, the
metrics and on the terminal."""

import asyncio
import io
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from html import unescape
from pathlib import Path

import pytest

from kit.cli.story import Story, reply_line
from kit.core.context import OPERATOR, Principal, Session
from kit.core.record import TurnRecord
from kit.metrics.summary import metrics
from kit.models.scripted import Line, ScriptedModel
from kit.runtime.handle import Reply
from kit.runtime.turn import run_turn
from kit.settings import HOME, Settings
from kit.stores.sqlite import SqliteStore
from kit.stores.turn_filter import TurnFilter
from kit.ui.compare.difference import compare
from kit.ui.shared.turn_facts import facts, headline
from kit.ui.shared.turn_fold import advance, stored_view
from kit.ui.shared.turn_view import TurnView
from kit.ui.traces.turn_list import table
from kit.wire import open_kit
from tests.app.rooms import app_over, room, shown, whole_app
from tests.kits import MIXED, SmallKit, answering, asks, classifies, small_kit, stitched
from tests.plan_kits import PlanKit, draft, gives_rows, plan_kit
from tests.planning.test_plans import raises

WHO = Principal(tenant_id="acme", user_id="u-001")
EXPECTED = {
    "complete": "Answered",
    "one failed": "2 of 3 answered",
    "over the cap": "1 of 2 answered",
    "part left out": "2 of 4 answered",
    "nobody asked": "Answered",
    "off script": "Could not answer",
    "outside": "Could not answer",
    "no question": "Could not answer",
    "declined": "Could not answer",
    "no label": "Could not answer",
    "all failed": "Could not answer",
    "plan mended": "Answered",
    "plan failed": "Could not answer",
    "stopped": "Stopped",
}


OUTSIDE = "Who painted the Mona Lisa?"
ASKED: dict[str, tuple[str, list[str]]] = {
    "complete": (MIXED, []),
    "one failed": (MIXED, ["rewards=raise"]),
    "nobody asked": ("hello", []),
    "off script": ("What is the weather in Paris?", []),
    "all failed": (MIXED, ["rewards=raise", "shop=raise", "support=raise"]),
    "no question": ("", []),
}
"""What the consumer deck is asked, and what is broken then."""


@dataclass
class Played:
    """The turns of this file: their store, and their replies by name."""

    path: Path
    replies: dict[str, Reply]


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Played:
    folder = tmp_path_factory.mktemp("agree")
    path = folder / "kit.db"
    replies: dict[str, Reply] = {}

    def session(name: str) -> Session:
        return Session(id=name.replace(" ", "-"), principal=WHO, locale="en")

    async def of_the_deck() -> None:
        settings = Settings(store=str(path), pace=0, model="offline")
        async with open_kit(settings, faults=True) as kit:
            for name, (question, faults) in ASKED.items():
                replies[name] = await kit.ask(question, session(name), faults=faults)
            turn = kit.ask(MIXED, session("stopped"), faults=["rewards=hang"])
            async for event in turn:
                if event.kind == "agent_started":
                    turn.cancel()
            replies["stopped"] = await turn
        gateway = "classifier_gateway"
        models = classifies("support", "ereceipts", part="My receipt didn't scan")
        async with open_kit(settings, models=models) as kit:
            replies["part left out"] = await kit.ask(MIXED, session("part left out"), gateway)
        settings = settings.with_(deck=HOME / "cards/gifts")
        async with open_kit(settings) as kit:
            replies["outside"] = await kit.ask(OUTSIDE, session("outside"))
        models = {"desk": ScriptedModel(Line("")), "*": "offline"}
        async with open_kit(settings, models=models) as kit:
            replies["no label"] = await kit.ask(OUTSIDE, session("no label"), gateway)

    async def of_kit(name: str, message: str, kit: SmallKit | PlanKit) -> None:
        if isinstance(kit, SmallKit):
            kit.store = SqliteStore(path)
        replies[name] = await run_turn(message, session(name), kit)
        kit.store.close()

    async def of_small_kits() -> None:
        models = {"a": answering("A is known."), "b": answering("B is known.")}
        capped = small_kit([asks("a", "b"), stitched, stitched], models, cap=1)
        await of_kit("over the cap", "about a and about b", capped)
        # What a model declines in words of its own counts as what the stand-in declines.
        declining = small_kit([Line("Sorry, I can't help with that.")], models)
        await of_kit("declined", "Tell me a joke.", declining)
        await of_kit("plan failed", "Do it.", plan_kit(folder, "nobody flies"))
        runs = iter([raises, gives_rows])
        drafts = (draft("one"), draft("one again"))
        mended = plan_kit(folder, *drafts, doing=lambda *args: next(runs)(*args))
        await of_kit("plan mended", "Do it.", mended)

    asyncio.run(of_the_deck())
    asyncio.run(of_small_kits())
    return Played(path, replies)


@pytest.fixture
def store(played: Played) -> Iterator[SqliteStore]:
    opened = SqliteStore(played.path)
    yield opened
    opened.close()


@pytest.fixture(autouse=True)
def app(played: Played, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with app_over(played.path, monkeypatch):
        yield


def record(store: SqliteStore, reply: Reply) -> TurnRecord:
    turn = store.turn(reply.turn_id, OPERATOR)
    assert turn is not None
    return turn


@pytest.mark.req("K-15")
@pytest.mark.parametrize("name", EXPECTED)
def test_every_surface_ends_a_turn_in_the_same_words(name: str, played: Played, store: SqliteStore):
    reply, words = played.replies[name], EXPECTED[name]
    live = advance(TurnView(), reply.events)
    turn = record(store, reply)
    stored = stored_view(turn, store.events(turn.id, OPERATOR))
    assert (headline(live).text, headline(stored).text) == (words, words)
    (row,) = table([turn])
    assert row["How it ended"] == words
    out = io.StringIO()
    story = Story(out, "offline")
    for event in reply.events:
        story.tell(event)
    assert out.getvalue().splitlines()[-1].startswith(f"  {words} after ")
    assert reply_line(reply)["ending"] == words
    assert live.parts == stored.parts == turn.measures.parts == reply.parts
    if name.startswith("plan "):
        assert "cap" not in [fact.name for fact in facts(live)], "it has limits of its own"
    if name == "plan failed":
        (part,) = compare({"A": live})["A"]
        assert (part.name, part.reason, part.silent) == ("Planner", "found nothing to say", False)
    assert (reply.status == "ok") is (reply.parts.answered > 0 or name == "nobody asked")


@pytest.mark.req("K-15")
@pytest.mark.parametrize("name", ["complete", "part left out", "plan failed", "stopped"])
def test_chat_and_trace_show_these_words(name: str, played: Played):
    words = EXPECTED[name]
    trace = room("traces", turn=played.replies[name].turn_id)
    said = unescape(shown(trace.run()))
    assert f"-badge[{words}]" in said
    nothing_owed = "No part that was counted is missing" in said
    assert nothing_owed is (words == "Answered")
    said = unescape(shown(whole_app(session=name.replace(" ", "-")).run()))
    assert f"-badge[{words}]" in said
    panel = re.findall(r"<h3>This turn (.*?)</h3>", said)
    assert panel and all(words in heading for heading in panel)


@pytest.mark.req("K-15")
def test_list_and_compare_show_these_words(played: Played):
    traces = room("traces").run()
    listed = Counter(traces.dataframe[0].value["How it ended"])
    assert listed == Counter(EXPECTED.values())
    names = ["complete", "one failed", "part left out", "all failed"]
    compared = room("compare", turns=",".join(played.replies[name].turn_id for name in names))
    html = [element.proto.body for element in compared.run().get("html")]
    (differences,) = [body for body in html if 'class="differences"' in body]
    rows = re.findall(r"<tr><th[^>]*>(.*?)</th><td[^>]*><i[^>]*>(.*?)</i></td>", differences)
    assert [ending for _, ending in rows] == [EXPECTED[name] for name in names]


@pytest.mark.req("K-15")
def test_metrics_and_filters_count_these_words(store: SqliteStore):
    def category(words: str) -> str:
        return "Partly answered" if " of " in words else words

    counts = Counter(map(category, EXPECTED.values()))
    rows = [row for row in metrics(store).rows() if row["metric"] == "turns_by_ending"]
    assert {row["of"]: row["value"] for row in rows} == counts
    for ending, words in (("answered", "Answered"), ("partly", "Partly answered")):
        page = store.search(WHO, TurnFilter(endings=(ending,)))  # type: ignore[arg-type]
        assert page.total == counts[words]
    assert store.search(WHO, TurnFilter(endings=("nothing",))).total == counts["Could not answer"]
