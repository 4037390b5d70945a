"""The offline stand-in as a chat model: every role it plays, from messages and bound tools alone."""

import json
import subprocess
import sys
from functools import reduce
from operator import add
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.tools import tool

from kit.models.offline import OfflineModel
from kit.models.offline.arguments import fill
from kit.models.offline.extraction import Source, capitalised
from tests.effort import effort
from tests.models.test_offline_routing import AGENTS

MIXED = "my receipt didn't scan, how many points do I have, and which games can I play"
LATE = (
    "No answer from support: it took too long to answer. "
    "Say plainly that this part could not be answered, and claim nothing for it."
)
LEFT = (
    "Not asked: play. Too many parts in one message. Say plainly that this part was left out, "
    "and offer to take it next."
)


def function(
    name: str, description: str, properties: dict[str, Any], required: list[str]
) -> dict[str, Any]:
    parameters = {"type": "object", "properties": properties, "required": required}
    return {
        "type": "function",
        "function": {"name": name, "description": description, "parameters": parameters},
    }


def ask(name: str, **more: Any) -> dict[str, Any]:
    properties = {
        "query": {"type": "string"},
        "intent_count": {"type": "integer"},
        "prior_context": {"type": "string"},
        **more,
    }
    return function(f"ask_{name}", AGENTS[name], properties, ["query", "intent_count"])


ROUTERS = [ask(name) for name in AGENTS]
WORKERS = [
    function(
        "find_offers",
        "Search current offers and deals by words, brand and category.",
        {
            "query": {"type": "string"},
            "brand": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
            "category": {"type": "string", "enum": ["beverages", "snacks", "household"]},
            "limit": {"type": "integer", "minimum": 1, "maximum": 20, "default": 5},
        },
        ["query"],
    ),
    function(
        "compare_prices",
        "Compare the price of one product across stores.",
        {"product": {"type": "string"}},
        ["product"],
    ),
    function(
        "render_cards",
        "Show offers as cards.",
        {"cards": {"type": "array", "items": {"type": "object"}}},
        ["cards"],
    ),
]


def model(tools: list[Any] | None = None, **options: Any) -> Any:
    quick = OfflineModel(pace=0, think=0)
    return quick.bind_tools(tools, **options) if tools is not None else quick


def say(*messages: BaseMessage | str, tools: list[Any] | None = None, **options: Any) -> AIMessage:
    return model(tools, **options).invoke(
        [HumanMessage(m) if isinstance(m, str) else m for m in messages]
    )


def called(reply: AIMessage) -> dict[str, dict[str, Any]]:
    return {call["name"]: call["args"] for call in reply.tool_calls}


# --- router


def test_router_calls_each_agent_with_the_users_words_and_says_what_it_does():
    reply = say(MIXED, tools=ROUTERS)
    assert called(reply) == {
        "ask_support": {"query": "my receipt didn't scan", "intent_count": 3},
        "ask_rewards": {"query": "how many points do I have", "intent_count": 3},
        "ask_play": {"query": "which games can I play", "intent_count": 3},
    }
    assert reply.text.count(".") == 1
    assert all(name in reply.text for name in ("support", "rewards", "play"))
    assert len({call["id"] for call in reply.tool_calls}) == 3


def test_single_request_is_passed_on_verbatim():
    request = "  When does the Oat-Milk offer EXPIRE?? (the 1 litre one)"
    assert called(say(request, tools=ROUTERS)) == {
        "ask_offer_details": {"query": request.strip(), "intent_count": 1}
    }


def test_cap_of_the_prompt_is_kept_and_the_count_stays_honest():
    reply = say(
        SystemMessage("Call at most 2 tools in one turn; choose the 2 most relevant."),
        MIXED,
        tools=ROUTERS,
    )
    assert len(reply.tool_calls) == 2
    assert {call["args"]["intent_count"] for call in reply.tool_calls} == {3}


PLAYING = SystemMessage("Date: x\nCalled in the previous turn: ask_restaurants")
HISTORY = [
    HumanMessage("find a sushi restaurant nearby"),
    AIMessage("Try the Blue Heron. Or which?"),
]


def test_agent_in_play_is_read_from_the_prompt():
    assert list(called(say(PLAYING, *HISTORY, "the second one", tools=ROUTERS))) == [
        "ask_restaurants"
    ]
    told = SystemMessage("Date: x\nCalled in the previous turn: ask_play")
    assert list(called(say(told, *HISTORY, "the second one", tools=ROUTERS))) == ["ask_play"]


def test_prior_context_is_carried_only_on_a_switch():
    switch = say(PLAYING, *HISTORY, "how many points do I have?", tools=ROUTERS)
    assert "Blue Heron" in called(switch)["ask_rewards"]["prior_context"]
    stay = say(PLAYING, *HISTORY, "another sushi restaurant please", tools=ROUTERS)
    assert "prior_context" not in called(stay)["ask_restaurants"]


def test_when_nothing_fits_the_prompt_decides():
    odd = "who wrote the great symphony"
    nothing = say(SystemMessage("When no tool fits: none"), odd, tools=ROUTERS)
    assert not nothing.tool_calls and "outside what I can help" in nothing.text
    shop = say(SystemMessage("When no tool fits: ask_shop"), odd, tools=ROUTERS)
    assert called(shop) == {"ask_shop": {"query": odd, "intent_count": 1}}


def test_small_talk_is_answered_without_a_call():
    reply = say(SystemMessage("When no tool fits: ask_shop"), "hi there!", tools=ROUTERS)
    assert not reply.tool_calls and "Hello" in reply.text


def test_further_fields_of_a_routing_tool_are_filled():
    topics = {"type": "string", "enum": ["receipt_scan", "account_login", "other"]}
    support = ask(
        "support",
        support_category=topics,
        support_summary={"type": "string", "maxLength": 40},
        order_id={"type": "string"},
    )
    args = called(say("my receipt would not scan at all", tools=[support, ask("play")]))[
        "ask_support"
    ]
    assert args["support_category"] == "receipt_scan"
    assert 0 < len(args["support_summary"]) <= 40
    assert "order_id" not in args


# --- worker


def test_worker_chooses_the_tool_and_fills_what_the_text_says():
    assert called(say("find coffee deals", tools=WORKERS)) == {"find_offers": {"query": "coffee"}}
    args = called(say("show me 3 offers on snacks from Ember Roast", tools=WORKERS))["find_offers"]
    assert (args["limit"], args["category"], args["brand"]) == (3, "snacks", "Ember Roast")
    assert called(say("compare the price of oat milk", tools=WORKERS)) == {
        "compare_prices": {"product": "oat milk"}
    }


HOURS = function(
    "opening_hours",
    "Tells when a branch opens and closes.",
    {
        "branch": {"type": "string", "enum": ["Mill Street", "Harbour"]},
        "brand": {"type": "string"},
    },
    ["branch"],
)


def test_of_a_name_that_no_option_has_the_worker_says_that_it_does_not_know_it():
    unknown = say("when does Garden Lane open?", tools=[HOURS])
    assert (unknown.text, unknown.tool_calls) == ("I don't know Garden Lane.", [])
    spanish = say(SystemMessage("Locale: es-US"), "when does Garden Lane open?", tools=[HOURS])
    assert spanish.text == "No conozco Garden Lane."
    known = called(say("when does Mill Street open?", tools=[HOURS]))
    assert known["opening_hours"]["branch"] == "Mill Street"
    unnamed = called(say("when do you open?", tools=[HOURS]))
    assert unnamed["opening_hours"]["branch"] in ("Mill Street", "Harbour")
    forced = called(say("when does Garden Lane open?", tools=[HOURS], tool_choice="any"))
    assert forced, "who must call a tool calls one"


BRANCHES = function(
    "branch_details",
    "Tells the street and the seats of a branch, by its id.",
    {"branch_id": {"type": "string", "pattern": "^br-[0-9]{4}$"}},
    ["branch_id"],
)
LISTING = function(
    "list_branches", "Lists branches, and counts them, by city.", {"city": {"type": "string"}}, []
)


@pytest.mark.parametrize(
    ("tool", "message", "arguments"),
    [
        (
            BRANCHES,
            "what's the street of br-0001, br-0002 and br-0003",
            [{"branch_id": "br-0001"}, {"branch_id": "br-0002"}, {"branch_id": "br-0003"}],
        ),
        (
            LISTING,
            "how many branches are in Rivermont and how many in Oakfield",
            [{"city": "Rivermont"}, {"city": "Oakfield"}],
        ),
        (
            HOURS,
            "when do Mill Street and Harbour open?",
            [{"branch": "Mill Street"}, {"branch": "Harbour"}],
        ),
        (LISTING, "how many are in Rivermont, and are they any good", [{"city": "Rivermont"}]),
    ],
)
def test_a_worker_looks_up_each_thing_that_is_named(
    tool: dict[str, Any], message: str, arguments: list[dict[str, str]]
):
    [key] = arguments[0]
    reply = say(message, tools=[tool])
    assert [{key: call["args"][key]} for call in reply.tool_calls] == arguments


def test_a_worker_that_knows_an_id_looks_up_nothing_else():
    assert list(called(say("phone br-0003", tools=[LISTING, BRANCHES]))) == ["branch_details"]
    followed = say(
        "how many seats has br-0003",
        AIMessage("It has 40 seats."),
        "and br-0002?",
        tools=[LISTING, BRANCHES],
    )
    assert called(followed) == {"branch_details": {"branch_id": "br-0002"}}


def test_worker_never_calls_a_tool_it_cannot_feed():
    assert "render_cards" not in called(say("show offers as cards", tools=WORKERS))


def test_tools_of_langchain_are_bound_too():
    @tool
    def look_up_points(user: str) -> str:
        """Looks up the points balance."""
        return user

    assert list(called(say("how many points do I have", tools=[look_up_points]))) == [
        "look_up_points"
    ]


def worked(*results: ToolMessage) -> str:
    calls = [{"name": "find_offers", "args": {}, "id": result.tool_call_id} for result in results]
    return say("find coffee deals", AIMessage("", tool_calls=calls), *results, tools=WORKERS).text


def test_worker_answers_from_what_the_tools_said_and_nothing_else():
    said = "Two offers match. Ember Roast: 200 points until 2026-12-01. Blue Hill: 20% off."
    assert worked(ToolMessage(said, tool_call_id="a")) == said


def test_of_a_long_result_the_items_that_matter_are_said_and_how_many_more_there_are():
    filler = " ".join(f"Shelf {n} holds towels and soap." for n in range(80))
    text = worked(
        ToolMessage(f"{filler} Coffee deals: Ember Roast is 20% off. {filler}", tool_call_id="a")
    )
    assert "Ember Roast is 20% off" in text and len(text) <= 1600
    said, _, left_out = text.rpartition(" And ")
    assert said.count("holds") + 1 + int(left_out.removesuffix(" more.")) == 81, "each once"
    menu = "The menu: " + "; ".join(f"dish {n} at {n + 3} dollars" for n in range(50)) + "."
    assert worked(ToolMessage(menu, tool_call_id="a")) == menu, "every row"


def test_worker_says_plainly_when_data_is_missing():
    text = worked(
        ToolMessage("This data is unavailable right now.", tool_call_id="a", status="error")
    )
    assert "not available" in text


@pytest.mark.parametrize(
    ("result", "words"),
    [
        (
            '{"doctor": "Weber", "day": "Monday", "free": true, "room": 3}',
            "Doctor Weber, day Monday, free yes, room 3.",
        ),
        (
            '[{"name": "Dune", "copies": 2}, {"name": "Emma", "copies": 0}]',
            "Name Dune, copies 2.\nName Emma, copies 0.",
        ),
        (
            '{"total": 2, "rows": [{"id": 7, "tags": ["new", "red"]}]}',
            "Total 2.\nRows: Id 7. Tags: new, red.",
        ),
        ("{not json", "{not json"),
    ],
)
def test_worker_says_every_field_of_a_json_result(result: str, words: str):
    assert worked(ToolMessage(result, tool_call_id="c1", name="find_offers")) == words


def test_worker_takes_the_day_and_what_stands_behind_a_fields_own_name():
    text = {"type": "string"}
    slots = function(
        "next_slot", "The next free slot with a doctor.", {"doctor": text, "day": text}, []
    )
    args = called(say("when is the next slot with Doctor Weber on friday?", tools=[slots]))[
        "next_slot"
    ]
    assert args == {"doctor": "Weber", "day": "Friday"}


def test_without_tools_nothing_is_invented():
    known = SystemMessage("The corner market opens at nine. The bakery closes at six.")
    assert "opens at nine" in say(known, "when does the corner market open").text
    assert "nothing to go on" in say("when does the corner market open").text


# --- composer


def composed(*results: tuple[str, str, str]) -> str:
    calls = [
        {"name": f"ask_{agent}", "args": {"query": "x", "intent_count": 1}, "id": f"c{n}"}
        for n, (agent, _, _) in enumerate(results)
    ]
    told = [
        ToolMessage(text, tool_call_id=f"c{n}", status=status)
        for n, (_, text, status) in enumerate(results)
    ]
    return say(MIXED, AIMessage("One moment.", tool_calls=calls), *told[::-1], tools=ROUTERS).text


def test_composer_keeps_every_fact_in_the_order_asked_and_says_it_once():
    text = composed(
        ("rewards", "You have 12,450 points. They expire on 2 May.", "success"),
        ("play", "They expire on 2 May. Level 7 of Tile Garden is open.", "success"),
    )
    assert text.index("12,450 points") < text.index("Level 7 of Tile Garden")
    assert text.count("They expire on 2 May") == 1


def test_composer_names_each_part_and_sets_a_long_list_item_by_item():
    listing = "Coffee offers: 200 points on A; 100 points on B; 50 points on C. You bought two."
    text = composed(
        ("rewards", "You have 12,450 points; 75 more are pending.", "success"),
        ("shop", listing, "success"),
    )
    assert text.split("\n\n")[0] == "**Rewards:** You have 12,450 points; 75 more are pending."
    assert (
        "**Shop:** Coffee offers:\n- 200 points on A\n- 100 points on B\n- 50 points on C." in text
        and text.endswith("You bought two.")
    )
    assert composed(("rewards", "You have 12,450 points.", "success")) == "You have 12,450 points."


@pytest.mark.req("PC2-FR-14")
def test_composer_owns_up_to_what_failed_and_what_was_left_out():
    text = composed(
        ("support", LATE, "error"),
        ("rewards", "You have 12,450 points.", "success"),
        ("play", LEFT, "error"),
    )
    assert "I wasn't able to get an answer about support: it took too long to answer." in text
    assert "I left out play for now; ask me again and I'll take it next." in text
    assert "Say plainly" not in text and "claim nothing" not in text
    assert "12,450 points" in text


def test_composer_owns_up_to_an_error_in_any_words():
    text = composed(("offer_details", "Traceback (most recent call last)", "error"))
    assert text == "I wasn't able to get an answer about offer details right now."


def test_note_stays_a_reservation():
    text = composed(
        (
            "rewards",
            "You have 12,450 points.\n\n(Note: yesterday's points may be missing)",
            "success",
        )
    )
    assert (
        "12,450 points" in text
        and "yesterday's points may be missing" in text
        and "(Note" not in text
    )


# --- structured jobs


def job(schema: dict[str, Any], *messages: BaseMessage | str) -> dict[str, Any]:
    spec = {
        "type": "function",
        "function": {"name": "submit_job", "description": "", "parameters": schema},
    }
    (call,) = say(*messages, tools=[spec], tool_choice="submit_job").tool_calls
    return call["args"]


def bounded(kind: str, low: int, size: int) -> dict[str, Any]:
    return {"type": kind, "minimum": low, "maximum": low + size}


small = st.integers(0, 6)
texts = st.builds(
    lambda least, more: {"type": "string", "minLength": least, "maxLength": least + more},
    small,
    st.integers(0, 60),
)
numbers = st.builds(bounded, st.sampled_from(["integer", "number"]), st.integers(-50, 50), small)
enums = st.builds(
    lambda options: {"enum": options},
    st.lists(st.sampled_from(["shop", "play", 3, True, "other"]), min_size=1, unique_by=repr),
)
leaves = st.one_of(
    texts,
    numbers,
    enums,
    st.just({"type": "boolean"}),
    st.just({"type": "string"}),
    st.just({"type": "integer"}),
)
arrays = st.builds(
    lambda items, least, more: {
        "type": "array",
        "items": items,
        "minItems": least,
        "maxItems": least + more,
    },
    leaves,
    small,
    small,
)
names = st.sampled_from(
    [
        "query",
        "summary",
        "score",
        "agent",
        "ids",
        "date",
        "location",
        "limit",
        "brand",
        "title",
        "is_ready",
        "zone",
    ]
)


@st.composite
def schemas(draw: st.DrawFn, depth: int = 1) -> dict[str, Any]:
    inner = st.one_of(leaves, arrays, schemas(depth - 1)) if depth else st.one_of(leaves, arrays)
    properties = draw(st.dictionaries(names, inner, min_size=1, max_size=5))
    required = draw(st.lists(st.sampled_from(sorted(properties)), unique=True))
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    schema=schemas(),
    request=st.one_of(
        st.text(max_size=80), st.just("find 3 coffee deals in Springfield and rate Ember Roast 4.5")
    ),
)
def test_job_output_is_valid_for_any_simple_schema(schema: dict[str, Any], request: str):
    jsonschema.validate(job(schema, request), schema)


# --- the chat model


TURNS = [
    ([HumanMessage(MIXED)], ROUTERS),
    ([HumanMessage("hello")], ROUTERS),
    ([HumanMessage("find coffee deals")], WORKERS),
    ([HumanMessage("what is this?")], None),
]


@pytest.mark.parametrize(("messages", "tools"), TURNS)
async def test_streaming_says_and_calls_the_same(
    messages: list[BaseMessage], tools: list[Any] | None
):
    whole = await model(tools).ainvoke(messages)
    chunks = [chunk async for chunk in model(tools).astream(messages)]
    merged = reduce(add, chunks)
    assert isinstance(merged, AIMessageChunk)
    assert (merged.text, merged.tool_calls, merged.usage_metadata) == (
        whole.text,
        whole.tool_calls,
        whole.usage_metadata,
    )
    assert chunks[-1].usage_metadata is not None
    assert all(len(chunk.text.split()) <= 5 for chunk in chunks)
    kinds = [
        "call" if chunk.tool_call_chunks else "text" if chunk.text else "end" for chunk in chunks
    ]
    assert kinds == sorted(kinds, key=["text", "call", "end"].index)
    assert "".join(chunk.text for chunk in model(tools).stream(messages)) == whole.text


async def test_pace_and_think_are_kept():
    clock = asyncio_time()
    start = clock()
    stamps = [
        clock() - start
        async for _ in OfflineModel(pace=0.5, think=2.0).bind_tools(ROUTERS).astream(MIXED)
    ]
    assert stamps == pytest.approx([2.0 + 0.5 * n for n in range(len(stamps))])


def asyncio_time() -> Any:
    import asyncio

    return asyncio.get_running_loop().time


def test_usage_grows_with_what_is_read_and_said():
    short, long = say("hello").usage_metadata, say("hello " + "dear friend " * 400).usage_metadata
    assert short and long
    assert long["input_tokens"] - short["input_tokens"] == 1200
    assert (
        short["output_tokens"] > 0
        and short["total_tokens"] == short["input_tokens"] + short["output_tokens"]
    )


ALONE = """
import json, socket, sys
def refuse(*a, **k): raise OSError("network used")
socket.socket.connect = socket.socket.connect_ex = socket.create_connection = socket.getaddrinfo = refuse
from kit.models.offline import OfflineModel
tools, text = json.load(sys.stdin)
reply = OfflineModel(pace=0, think=0).bind_tools(tools).invoke(text)
print(json.dumps([reply.text, reply.tool_calls]))
"""


def test_a_fresh_process_without_network_or_home_answers_the_same(tmp_path: Any):
    environment = {"HOME": str(tmp_path), "PYTHONHASHSEED": "7", "PYTHONPATH": ":".join(sys.path)}
    given_ = json.dumps([ROUTERS, MIXED])
    done = subprocess.run(
        [sys.executable, "-c", ALONE],
        input=given_,
        capture_output=True,
        text=True,
        env=environment,
        timeout=120,
    )
    here = say(MIXED, tools=ROUTERS)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == [here.text, here.tool_calls]
    assert not any(tmp_path.iterdir())


ODD: list[list[BaseMessage]] = [
    [],
    [HumanMessage("")],
    [HumanMessage("\x00\x1b[2J 😀 \u202e ,,, ... ???")],
    [HumanMessage("half a pair: \ud800")],
    [HumanMessage([{"type": "image_url", "image_url": {"url": "data:,"}}])],
    [HumanMessage(["plain", {"type": "text", "text": "find coffee deals"}, {"type": "odd"}])],
    [HumanMessage("find coffee deals and my points. " * 5000)],
    [HumanMessage("a" * 100_000)],
    [HumanMessage("find coffee limit " + "9" * 400)],
    [HumanMessage("(((" * 3000 + "and " * 3000)],
    [
        SystemMessage(
            "Call at most 0 tools. When no tool fits: ask_nobody\nCalled in the previous turn: "
        ),
        HumanMessage("yes"),
    ],
    [AIMessage("Hi. What can I do?")],
    [HumanMessage("x"), ToolMessage("stray", tool_call_id="none")],
]


@pytest.mark.parametrize(
    "tools",
    [None, ROUTERS, WORKERS, [function("odd", "", {}, [])]],
    ids=["none", "routers", "workers", "odd"],
)
def test_odd_input_gets_an_answer(tools: list[Any] | None):
    def generate() -> None:
        for number, messages in enumerate(ODD):
            if tools is None:
                reply = model(tools)._generate(messages)
            else:
                reply = model()._generate(messages, tools=tools)
            message = reply.generations[0].message
            assert message.text or message.tool_calls, number

    assert effort(generate, plays=1) < 2.0


def test_routed_turn_costs_little():
    bound = model(ROUTERS)
    bound.invoke(MIXED)
    assert effort(lambda: bound.invoke(MIXED), plays=5, enough=0.03) < 0.03


@pytest.mark.parametrize(
    ("request_", "sentence"),
    [
        ("how many points do I have, you garbage", "Let me check with rewards."),
        (f"how many points do I have{'!' * 5000}", "Let me check with rewards."),
        ("how many points do I have, and find coffee deals", "Let me check with rewards and shop."),
    ],
)
def test_a_preamble_names_who_is_asked_and_no_word_of_the_users(request_: str, sentence: str):
    assert say(request_, tools=ROUTERS).text == sentence


def test_words_of_the_tools_own_name_narrow_no_search():
    games = function("list_games", "Games that pay points.", {"query": {"type": "string"}}, [])
    assert called(say("what games can I play?", tools=[games])) == {"list_games": {}}
    assert called(say("which puzzle games are there?", tools=[games])) == {
        "list_games": {"query": "puzzle"}
    }


@pytest.mark.parametrize("name", ["H&M", "A & W", "Marks & Spencer Food Hall"])
def test_a_name_with_an_ampersand_is_one_argument(name: str):
    brand = {"properties": {"shop": {"type": "string"}}, "required": ["shop"]}
    query = {"properties": {"query": {"type": "string"}}, "required": ["query"]}
    request_text = f"redeem 500 points for a gift card of {name}"
    assert fill(brand, Source(request_text)) == {"shop": name}
    assert fill(query, Source(f"find coffee deals at {name}")) == {"query": f"coffee {name}"}
    assert capitalised(f"{name} is open today.") == ([name] if " " in name else [])


def test_words_that_place_a_thing_in_a_list_are_not_what_is_sought():
    offers = function("find_offers", "Offers on products.", {"query": {"type": "string"}}, [])
    assert called(say("which offers end first?", tools=[offers])) == {"find_offers": {}}
    assert called(say("show me the next offers", tools=[offers])) == {"find_offers": {}}
    assert called(say("offers of First Harvest", tools=[offers])) == {
        "find_offers": {"query": "first harvest"}
    }
