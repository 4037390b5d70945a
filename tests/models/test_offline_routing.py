"""The offline stand-in's routing decision: behaviours, and a coarse floor on a small set of our own."""

import sys
from pathlib import Path

import pytest

from kit.core.language.clauses import clauses
from kit.core.language.small_talk import asks, small_talk
from kit.models.offline import OfflineModel, wording
from kit.models.offline.routing import Routes, Situation, SmallTalk, Unfit, decide
from kit.models.offline.similarity import Document
from kit.models.offline.wording import LONG_TO_LEARN, WordingClassifier
from tests.security.loop_gap import LONGEST_GAP, LoopGap

AGENTS = {
    "shop": "Finds products, deals, coupons and offers in the catalogue, compares prices and suggests things to buy.",
    "support": "Solves problems: receipts that did not scan, missing points, account and login "
    "trouble, talking to a person.",
    "rewards": "Knows the points balance, points history, gift cards and how to redeem points.",
    "ereceipts": "Looks up purchase history: what was bought, when, in which store, and how much was spent.",
    "play": "Games and quizzes to play for points: which games there are, levels, progress and streaks.",
    "offer_details": "Explains the terms of one offer: when it expires, limits, which sizes qualify.",
    "restaurants": "Finds restaurants, cafes and takeaways nearby by cuisine or dish: pizza, "
    "sushi, burgers. Dinner and lunch.",
    "retailer_context": "Facts about a store: opening hours, address, return policy, whether it "
    "takes part in the program.",
}
NAMES = list(AGENTS)
TOOLS = tuple(Document(name.replace("_", " "), text) for name, text in AGENTS.items())


def routed(request: str, *, in_play: str = "", said: str = "", most: int = 5) -> list[str]:
    playing = frozenset(NAMES.index(name) for name in in_play.split())
    decision = decide(Situation(request, TOOLS, playing, said), most)
    return [NAMES[part.tool] for part in decision.parts] if isinstance(decision, Routes) else []


def test_a_list_is_split_at_its_commas_and_marks():
    assert [c.text for c in clauses("coffee deals, my points, pizza nearby", opening=True)] == [
        "coffee deals",
        "my points",
        "pizza nearby",
    ]
    assert [c.text for c in clauses("Thanks! Find a cafe, and also tell me my balance")] == [
        "Find a cafe",
        "tell me my balance",
    ]
    assert [c.text for c in clauses("1 how many points do i have 2 did my receipt go thru")] == [
        "how many points do i have",
        "did my receipt go thru",
    ]
    assert len(clauses("if I buy 2 do I get points for 1")) == 1
    assert len(clauses("find a room in Leeds, from Friday, for two", opening=True)) == 1


@pytest.mark.parametrize(
    "request_",
    ["the second one", "make it 4 people", "what about Friday?", "and cheaper ones?", "yes"],
)
def test_elliptical_reply_stays_with_the_agent_in_play(request_: str):
    said = "I found two places for dinner. Which one would you like?"
    assert routed(request_, in_play="restaurants", said=said) == ["restaurants"]


@pytest.mark.parametrize(
    "request_",
    [
        "Great, what is the phone number?",
        "Can I get the address and the phone number, please?",
        "Excellent. And the price?",
        "what is the entrance fee",
    ],
)
def test_what_is_asked_of_a_thing_that_was_shown_is_for_whoever_showed_it(request_: str):
    assert routed(request_, in_play="restaurants", said="Here is one.") == ["restaurants"]


def test_complete_new_request_never_inherits():
    assert routed(
        "how many points do I have?", in_play="restaurants", said="Here are two sushi places."
    ) == ["rewards"]
    assert (
        routed(
            "how tall is the highest mountain on earth", in_play="play", said="You are on level 3."
        )
        == []
    )


@pytest.mark.req("SAT-6")
@pytest.mark.parametrize(
    "text",
    [
        "hi",
        "Hello there!",
        "ok great, thank you!",
        "How are you?",
        "No, that's all I need. Have a nice day!",
        "Actually I don't need anything else. Thank you.",
        "Yes, thank you, you have given me the information that I needed.",
        "I have no more questions, thank you!",
        "I don't need more at the moment, thanks",
        "Thanks, I am sure. Goodbye.",
    ],
)
def test_pleasantries_are_small_talk(text: str):
    assert small_talk(text)
    assert isinstance(decide(Situation(text, TOOLS), 5), SmallTalk)


@pytest.mark.req("SAT-6")
@pytest.mark.parametrize(
    "text",
    [
        "hi, find coffee",
        "thanks, and my points?",
        "thanks, does that cover my points",
        "I don't see my points, thanks",
        "help",
        "ok but it crashed",
        "tell me a joke",
        "",
        "   ",
        "good coffee",
        "no points came",
    ],
)
def test_anything_beside_pleasantries_is_not_small_talk(text: str):
    assert not small_talk(text)


@pytest.mark.req("SAT-6")
def test_bare_yes_after_a_question_is_an_answer():
    assert small_talk("ok")
    assert small_talk("ok", "Your points are up to date. Can I help you with anything else?")
    assert not small_talk("ok", "Did the upload fail again?")
    assert asks("I found it. Please confirm the table for two.")


def test_nothing_close_enough_is_unfit():
    assert isinstance(decide(Situation("how many points do I have", ()), 5), Unfit)
    assert isinstance(decide(Situation("who wrote the great symphony", TOOLS), 5), Unfit)


def test_what_a_description_rules_out_does_not_attract():
    tools = (
        Document("news", "Reads the news. Not for weather forecasts, rain or storms."),
        Document("sky", "Rain and storms: the weather forecast."),
    )
    decision = decide(Situation("will there be rain or storms", tools), 5)
    assert isinstance(decision, Routes)
    assert [part.tool for part in decision.parts] == [1]


def test_what_was_learnt_is_kept_and_a_broken_file_of_it_is_learnt_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    numbers = range(LONG_TO_LEARN)
    requests = [
        [f"water the garden of house {number}" for number in numbers],
        [f"when does train {number} leave" for number in numbers],
    ]
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path))
    first = WordingClassifier.of(requests).score("water my garden").tolist()
    (kept,) = tmp_path.rglob("wording.*.npz")
    kept.write_bytes(kept.read_bytes()[:1000])
    assert WordingClassifier.of(requests).score("water my garden").tolist() == first
    assert first[0] > first[1]
    # With another code that tells words apart, nothing is read of what was learnt before.
    monkeypatch.setattr(wording, "words", lambda text: text.split())
    WordingClassifier.of(requests)
    assert len(list(tmp_path.rglob("wording.*.npz"))) == 2


@pytest.mark.realtime
async def test_nothing_else_waits_while_the_first_reply_learns_from_thousands_of_requests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path))
    numbers = range(2000)
    requests = {
        "garden": tuple(f"water the garden of house {number}" for number in numbers),
        "trains": tuple(f"when does train {number} leave" for number in numbers),
    }
    tools: list[dict[str, object]] = []
    for name in requests:
        arguments = {"type": "object", "properties": {"query": {"type": "string"}}}
        tools.append({"name": f"ask_{name}", "description": name, "parameters": arguments})
    OfflineModel.warm()
    model = OfflineModel(think=0).bind_tools(tools, requests=requests)
    async with LoopGap() as gap:
        reply = await model.ainvoke("water my garden and tell me when train 7 leaves")
    assert [call["name"] for call in reply.tool_calls] == ["ask_garden", "ask_trains"]
    assert list(tmp_path.rglob("wording.*.npz")), "it had learnt from them before"
    assert gap.longest < LONGEST_GAP


async def test_a_lookup_whose_own_name_begins_with_ask_is_known_by_the_requests_of_its_agent():
    requests = {
        "ask_clerk": (
            "which shelf is the atlas on",
            "who is the librarian",
            "where do I return it",
        ),
        "count_plants": ("how many roses are left", "how many tulips are left", "count the ferns"),
    }
    descriptions = {"ask_clerk": "Says how many things are left.", "count_plants": "Flowers."}
    arguments = {"type": "object", "properties": {"question": {"type": "string"}}}
    tools: list[dict[str, object]] = []
    for name, description in descriptions.items():
        tools.append({"name": name, "description": description, "parameters": arguments})
    model = OfflineModel(think=0).bind_tools(tools, requests=requests)
    reply = await model.ainvoke("how many tulips are left")
    assert [call["name"] for call in reply.tool_calls] == ["count_plants"]


def test_a_deck_that_lists_requests_refuses_what_is_asked_elsewhere():
    listed = (
        Document(
            "garden", "Waters plants.", ("water the roses", "is the lawn dry", "feed my ferns")
        ),
        Document(
            "trains", "Knows when trains leave.", ("when is the next train", "trains to York")
        ),
    )
    assert isinstance(decide(Situation("who wrote the great symphony", listed), 4), Unfit)
    assert isinstance(decide(Situation("are the ferns dry", listed), 4), Routes)
