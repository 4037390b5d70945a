"""The offline stand-in as a chat model: every role it plays, from messages and bound tools alone."""

from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.messages.ai import add_ai_message_chunks

from kit.models.offline import OfflineModel
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


def test_who_answered_before_is_read_from_the_prompt_and_prior_context_is_carried_only_on_a_switch():
    assert list(called(say(PLAYING, *HISTORY, "the second one", tools=ROUTERS))) == [
        "ask_restaurants"
    ]
    switch = say(PLAYING, *HISTORY, "how many points do I have?", tools=ROUTERS)
    assert "Blue Heron" in called(switch)["ask_rewards"]["prior_context"]
    stay = say(PLAYING, *HISTORY, "another sushi restaurant please", tools=ROUTERS)
    assert "prior_context" not in called(stay)["ask_restaurants"]


def test_a_field_of_a_routing_tool_that_names_its_choices_is_filled():
    topics = {"type": "string", "enum": ["receipt_scan", "account_login", "other"]}
    support = ask("support", support_category=topics, order_id={"type": "string"})
    asked = called(say("my receipt would not scan at all", tools=[support, ask("play")]))
    assert asked["ask_support"]["support_category"] == "receipt_scan"
    assert "order_id" not in asked["ask_support"]


# --- worker


def test_worker_chooses_the_tool_and_fills_what_the_text_says():
    assert called(say("find coffee deals", tools=WORKERS)) == {"find_offers": {"query": "coffee"}}
    args = called(say("show me 3 offers on snacks from Ember Roast", tools=WORKERS))["find_offers"]
    assert (args["limit"], args["category"], args["brand"]) == (3, "snacks", "Ember Roast")
    assert called(say("compare the price of oat milk", tools=WORKERS)) == {
        "compare_prices": {"product": "oat milk"}
    }
    assert "render_cards" not in called(say("show offers as cards", tools=WORKERS)), (
        "nothing to fill it with"
    )


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
    assert called(say("when do you open?", tools=[HOURS])), "any of them, where none is named"
    forced = called(say("when does Garden Lane open?", tools=[HOURS], tool_choice="any"))
    assert forced, "who must call a tool calls one"


def test_an_option_that_is_named_now_comes_before_one_that_was_named_earlier():
    days = ["Monday", "Tuesday", "Friday"]
    rooms = function(
        "find_room",
        "Names the rooms that are free on a weekday.",
        {"weekday": {"type": "string", "enum": days, "default": "Monday"}},
        [],
    )
    friday = [HumanMessage("which room is free on Friday?"), AIMessage("Harbour.")]
    monday = [HumanMessage("which room is free on Monday?"), AIMessage("Harbour.")]
    assert called(say(*friday, "and on Tuesday?", tools=[rooms])) == {
        "find_room": {"weekday": "Tuesday"}
    }
    assert called(say(*monday, "and on Friday?", tools=[rooms])) == {
        "find_room": {"weekday": "Friday"}
    }
    assert called(say(*friday, "and that one?", tools=[rooms])) == {
        "find_room": {"weekday": "Friday"}
    }


BRANCHES = function(
    "branch_details",
    "Tells the street and the seats of a branch, by its id.",
    {"branch_id": {"type": "string", "pattern": "^br-[0-9]{4}$"}},
    ["branch_id"],
)
LISTING = function(
    "list_branches", "Lists branches, and counts them, by city.", {"city": {"type": "string"}}, []
)


GAMES = function("list_games", "Games that pay points.", {"query": {"type": "string"}}, [])
OFFERS = function("find_offers", "Offers on products.", {"query": {"type": "string"}}, [])
USER = function("points", "Looks up the points balance.", {"user": {"type": "string"}}, ["user"])
SLOTS = function(
    "next_slot",
    "The next free slot with a doctor.",
    {"doctor": {"type": "string"}, "day": {"type": "string"}},
    [],
)


@pytest.mark.parametrize(
    ("tool", "message", "arguments"),
    [
        (BRANCHES, "street of br-0001 and br-0002", [{"branch_id": "br-0001"}, {"branch_id": "br-0002"}]),
        (LISTING, "how many branches are in Rivermont and how many in Oakfield",
         [{"city": "Rivermont"}, {"city": "Oakfield"}]),
        (LISTING, "how many are in Rivermont, and are they any good", [{"city": "Rivermont"}]),
        (SLOTS, "when is the next slot with Doctor Weber on friday?", [{"doctor": "Weber", "day": "Friday"}]),
        (USER, "how many points do I have", [{"user": "how many points do I have"}]),
        # Words of the tool's own name, and words that place a thing in a list, narrow no search.
        (GAMES, "what games can I play?", [{}]),
        (GAMES, "which puzzle games are there?", [{"query": "puzzle"}]),
        (OFFERS, "which offers end first?", [{}]),
        (OFFERS, "offers of First Harvest", [{"query": "first harvest"}]),
    ],
)  # fmt: skip
def test_a_worker_looks_up_each_thing_that_is_named(
    tool: dict[str, Any], message: str, arguments: list[dict[str, str]]
):
    assert [call["args"] for call in say(message, tools=[tool]).tool_calls] == arguments


def worked(*results: ToolMessage) -> str:
    calls = [{"name": "find_offers", "args": {}, "id": result.tool_call_id} for result in results]
    return say("find coffee deals", AIMessage("", tool_calls=calls), *results, tools=WORKERS).text


def test_worker_answers_from_what_the_tools_said_and_nothing_else():
    said = "Two offers match. Ember Roast: 200 points until 2026-12-01. Blue Hill: 20% off."
    assert worked(ToolMessage(said, tool_call_id="a")) == said
    lost = ToolMessage("This data is unavailable right now.", tool_call_id="a", status="error")
    assert "not available" in worked(lost)


def test_of_a_long_result_the_items_that_matter_are_said_and_how_many_more_there_are():
    filler = " ".join(f"Shelf {n} holds towels and soap." for n in range(80))
    text = worked(ToolMessage(f"{filler} Coffee deals: Ember Roast is 20% off.", tool_call_id="a"))
    assert "Ember Roast is 20% off" in text and len(text) <= 1600
    said, _, left_out = text.rpartition(" And ")
    assert said.count("holds") + int(left_out.removesuffix(" more.")) == 80, "each is counted once"
    menu = "The menu: " + "; ".join(f"dish {n} at {n + 3} dollars" for n in range(50)) + "."
    assert worked(ToolMessage(menu, tool_call_id="a")) == menu, "every row"


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
        ("{not json", "{not json"),
    ],
)
def test_worker_says_every_field_of_a_json_result(result: str, words: str):
    assert worked(ToolMessage(result, tool_call_id="c1", name="find_offers")) == words


@pytest.mark.parametrize(
    ("result", "of_lookup", "of_act"),
    [
        ("(no text)", "Nothing was returned for the offers.", "“Find offers” was done; {}"),
        ("null", "Nothing was returned for the offers.", "“Find offers” was done; {}"),
        ("[]", "Nothing was returned for the offers.", "“Find offers” was done; {}"),
        ("true", "“Find offers” says yes.", "“Find offers” was done; {}"),
        ("false", "“Find offers” says no.", "“Find offers” says no."),
    ],
)
def test_a_result_without_words_is_told_as_what_it_says_of_a_lookup_and_of_an_act(
    result: str, of_lookup: str, of_act: str
):
    messages = [
        HumanMessage("find coffee deals"),
        AIMessage("", tool_calls=[{"name": "find_offers", "args": {}, "id": "a"}]),
        ToolMessage(result, tool_call_id="a"),
    ]
    assert say(*messages, tools=WORKERS).text == of_lookup
    acting = model(WORKERS).bind(acts=("find_offers",))
    assert acting.invoke(messages).text == of_act.format("it said nothing else.")
    spanish = acting.invoke([SystemMessage("Locale: es-US"), *messages]).text
    assert spanish != acting.invoke(messages).text


def test_of_a_text_without_end_it_says_that_it_was_cut_off():
    whole = worked(ToolMessage("blah " * 500_000, tool_call_id="a"))
    assert whole.startswith("blah blah") and len(whole) < 1_700
    assert whole.endswith("The rest is too long, and was cut off.")
    begun = worked(ToolMessage(f"Coffee: 20% off. {'blah ' * 500_000}", tool_call_id="a"))
    assert begun == "Coffee: 20% off. The rest is too long, and was cut off."


def test_without_tools_nothing_is_invented():
    known = SystemMessage("The corner market opens at nine. The bakery closes at six.")
    assert "opens at nine" in say(known, "when does the corner market open").text
    assert "I can't help with that" in say("when does the corner market open").text


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
        ("rewards", "You have 12,450 points.\n\n(Note: yesterday's may be missing)", "success"),
        ("play", LEFT, "error"),
        ("offer_details", "Traceback (most recent call last)", "error"),
    )
    assert "I wasn't able to get an answer about offer details right now." in text
    assert "yesterday's may be missing" in text and "(Note" not in text and "Traceback" not in text
    assert "I wasn't able to get an answer about support: it took too long to answer." in text
    assert "I left out play for now; ask me again and I'll take it next." in text
    assert "Say plainly" not in text and "claim nothing" not in text
    assert "12,450 points" in text


# --- structured jobs


def job(schema: dict[str, Any], *messages: BaseMessage | str) -> dict[str, Any]:
    spec = {
        "type": "function",
        "function": {"name": "submit_job", "description": "", "parameters": schema},
    }
    (call,) = say(*messages, tools=[spec], tool_choice="submit_job").tool_calls
    return call["args"]


SCHEMAS: dict[str, dict[str, Any]] = {
    "title": {"type": "string", "minLength": 3, "maxLength": 3},
    "summary": {"type": "string"},
    "order_id": {"type": "string"},
    "score": {"type": "number", "minimum": 4.5, "maximum": 5},
    "limit": {"type": "integer", "minimum": -50, "maximum": -48},
    "agent": {"enum": ["shop", 3, True]},
    "is_ready": {"type": "boolean"},
    "ids": {"type": "array", "items": {"type": "integer"}, "minItems": 3, "maxItems": 3},
    "location": {
        "type": "object",
        "properties": {"zone": {"enum": ["north", "south"]}, "date": {"type": "string"}},
        "required": ["zone"],
        "additionalProperties": False,
    },
}
"""Fields of one form each, with bounds that no word of a request keeps by itself."""


@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    required=st.sets(st.sampled_from(sorted(SCHEMAS))),
    request=st.one_of(
        st.text(max_size=80), st.just("find 3 coffee deals in Springfield and rate Ember Roast 4.5")
    ),
)
def test_job_output_is_valid_for_any_simple_schema(required: set[str], request: str):
    schema = {
        "type": "object",
        "properties": SCHEMAS,
        "required": sorted(required),
        "additionalProperties": False,
    }
    jsonschema.validate(job(schema, request), schema)


# --- the chat model


@pytest.mark.parametrize("tools", [ROUTERS, None], ids=["calls", "text"])
async def test_streaming_says_and_calls_the_same_in_pieces(tools: list[Any] | None):
    whole = await model(tools).ainvoke(MIXED)
    chunks = [chunk async for chunk in model(tools).astream(MIXED)]
    merged = add_ai_message_chunks(chunks[0], *chunks[1:])
    assert (merged.text, merged.tool_calls) == (whole.text, whole.tool_calls)
    assert merged.usage_metadata == whole.usage_metadata == chunks[-1].usage_metadata
    assert all(len(chunk.text.split()) <= 5 for chunk in chunks)
    assert "".join(chunk.text for chunk in model(tools).stream(MIXED)) == whole.text


ODD: list[list[BaseMessage]] = [
    [],
    [HumanMessage("")],
    [HumanMessage("\x00\x1b[2J 😀 \u202e ,,, ... ???")],
    [HumanMessage("half a pair: \ud800")],
    [HumanMessage(["plain", {"type": "text", "text": "find coffee deals"}, {"type": "odd"}])],
    [HumanMessage("find coffee deals and my points. " * 5000)],
    [HumanMessage("find coffee limit " + "9" * 400)],
    [HumanMessage("(((" * 3000 + "and " * 3000)],
    [
        SystemMessage(
            "Call at most 0 tools. When no tool fits: ask_nobody\nCalled in the previous turn: "
        ),
        HumanMessage("yes"),
    ],
    [HumanMessage("x"), ToolMessage("stray", tool_call_id="none")],
]


@pytest.mark.parametrize(
    "tools",
    [None, ROUTERS, [*WORKERS, function("odd", "", {}, [])]],
    ids=["none", "routers", "workers"],
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


@pytest.mark.parametrize(
    ("request_", "sentence"),
    [
        ("how many points do I have, you garbage", "Let me check with rewards."),
        ("how many points do I have, and find coffee deals", "Let me check with rewards and shop."),
    ],
)
def test_a_preamble_names_who_is_asked_and_no_word_of_the_users(request_: str, sentence: str):
    assert say(request_, tools=ROUTERS).text == sentence


def test_a_name_with_an_ampersand_is_one_argument():
    name = "Marks & Spencer Food Hall"
    cards = function("redeem", "Redeems points at a shop.", {"shop": {"type": "string"}}, ["shop"])
    [call] = say(f"redeem 500 points for a gift card of {name}", tools=[cards]).tool_calls
    assert call["args"] == {"shop": name}
