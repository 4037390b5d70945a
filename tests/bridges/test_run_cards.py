"""Cards that run a function or a service: loaded, checked, asked, made to fail."""

import asyncio
import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.responses import JSONResponse, PlainTextResponse, StreamingResponse
from starlette.routing import Route

from kit import open_kit
from kit.compose.deck import load_deck
from kit.core.bodies.call import ToolEnded, ToolStarted
from kit.core.errors import BindError, DeckError
from kit.core.fault import Fault
from kit.core.outcome import Answer, Failure, Usage
from kit.metrics.summary import metrics
from kit.patterns import PATTERNS
from kit.ui.shared.turn_facts import fault_lines
from kit.ui.shared.turn_fold import advance
from kit.ui.shared.turn_view import TurnView
from kit.worlds.service.serve import serving
from tests.bridges.decks import ask, kit_over, write_deck
from tests.kits import OFFLINE, bodies, failures, logged, nothing_runs, spans

AGENTS = """
import asyncio
from kit import Reported
from kit.bridges.part import Called, Calling, Piece, Spent
from kit.core.outcome import Usage

async def flights(message):
    return "A flight leaves at noon."

async def hotels(message, principal):
    yield Piece("Let me look. ")
    yield Calling("find_hotel", "1", {"city": "Leeds"})
    await asyncio.sleep(1)
    yield Called("find_hotel", call_id="1", result="Grand")
    yield Piece(f"{principal.user_id} stays at the Grand.")
    yield Spent(Usage(input_tokens=100, output_tokens=10, model_calls=1, cost=0.02))

async def breaks(message):
    yield Piece("I was about to say zx-half")
    raise RuntimeError("zx-secret")

async def hangs(message):
    yield Calling("search", "1")
    await asyncio.sleep(3600)

async def silent(message):
    return "  "

async def rambles(message):
    return "zx-" * 1_000_000

async def leaves(message):
    raise SystemExit(3)

def leaves_its_thread(message):
    raise SystemExit(3)

async def refuses(message):
    return "I'm sorry, but I can't help with that."
"""


async def test_functions_of_a_file_answer_as_sub_agents_with_their_calls_and_their_spend(
    tmp_path: Path,
):
    deck = write_deck(
        tmp_path, {"flights": "./agents.py:flights", "hotels": "./agents.py:hotels"}, AGENTS
    )
    async with kit_over(deck, "flights", "hotels") as kit:
        reply = await kit.ask("Please help me.", kit.session("s"))
        counted = metrics(kit.store)
    assert reply.status == "ok"
    assert "leaves at noon" in reply.text and "visitor stays at the Grand." in reply.text
    assert "Let me look" not in reply.text, "what it said before its call is no part of its answer"
    [call], [ended], [span] = (
        bodies(reply, ToolStarted),
        bodies(reply, ToolEnded),
        spans(reply, "tool"),
    )
    assert (call.agent, call.tool, call.args) == ("hotels", "find_hotel", {"city": "Leeds"})
    assert (ended.result, ended.error) == ("Grand", None)
    assert span.seconds == pytest.approx(1.0, abs=0.01)
    flights, hotels = (outcome.usage for outcome in reply.outcomes)
    told = Usage(input_tokens=100, output_tokens=10, model_calls=1, tool_calls=1, cost=0.02)
    untold = Usage(untold_tokens=1, untold_costs=1)
    assert (flights, hotels) == (untold, told), "unknown is not 0"
    assert reply.usage.cost == pytest.approx(0.02)
    assert (reply.usage.untold_tokens, reply.usage.untold_costs) == (1, 1)
    assert counted.number("cost_dollars_total", "work") == pytest.approx(0.02)
    assert counted.number("tokens_total", "work") == 110
    assert counted.number("spending_not_told_total", "agents of other systems") == 1


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("breaks", "exception"),
        ("hangs", "timeout"),
        ("silent", "insufficient"),
        ("rambles", "contract_violation"),
        ("leaves", "exception"),
        ("leaves_its_thread", "exception"),
        ("refuses", "unanswerable"),
    ],
)
async def test_whatever_goes_wrong_in_one_is_its_failure_alone(
    tmp_path: Path, name: str, reason: str
):
    deck = write_deck(
        tmp_path, {"flights": "./agents.py:flights", "other": f"./agents.py:{name}"}, AGENTS
    )
    reply = await ask(deck, "flights", "other")
    assert [(failure.agent, failure.reason) for failure in failures(reply)] == [("other", reason)]
    assert "leaves at noon" in reply.text and "get an answer" in reply.text
    assert "zx-" not in reply.text
    assert ("zx-secret" in logged(reply)) == (name == "breaks"), "the trace alone says why"
    # A call that the system had open when it ended is closed.
    assert len(bodies(reply, ToolStarted)) == len(bodies(reply, ToolEnded))
    assert nothing_runs()


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("hotels=timeout", "timeout"),
        ("hotels=raise", "exception"),
        ("hotels=missing", "exception"),
        ("hotels=refusal", "refusal"),
    ],
)
async def test_faults_on_purpose_strike_a_system_too(tmp_path: Path, fault: str, reason: str):
    deck = write_deck(tmp_path, {"hotels": "./agents.py:hotels"}, AGENTS)
    reply = await ask(deck, "hotels", faults=[fault])
    assert [failure.reason for failure in failures(reply)] == [reason]
    assert "Grand" not in reply.text and "zx-" not in reply.text


async def test_a_limit_of_calls_or_dollars_holds_for_what_a_system_tells(tmp_path: Path):
    limits = {"hotels": "policy: {cost: 0.01}\n", "other": "policy: {max_tool_calls: 0}\n"}
    runs = {"hotels": "./agents.py:hotels", "other": "./agents.py:hotels"}
    reply = await ask(write_deck(tmp_path, runs, AGENTS, limits), "hotels", "other")
    assert [failure.reason for failure in failures(reply)] == ["budget", "budget"]
    assert reply.usage.cost == pytest.approx(0.02), "what was spent is counted all the same"


def test_what_a_card_with_run_cannot_have_is_a_fault_with_its_line(tmp_path: Path):
    deck = write_deck(
        tmp_path,
        {"flights": "./agents.py:flights"},
        AGENTS,
        {"flights": "model: offline\ntools: [x]\nprompt_blocks: [y]\n"},
    )
    with pytest.raises(DeckError) as error:
        load_deck(deck)
    text = str(error.value)
    for number, name in enumerate(("model", "tools", "prompt_blocks"), 4):
        assert (
            f"flights.yaml:{number}: an agent with `run` answers by itself and takes no {name}"
            in text
        )


@pytest.mark.parametrize(
    ("run", "words"),
    [
        ("./agents.py:flihgts", "did you mean 'flights'"),
        ("./agent.py:flights", "did you mean './agents.py'"),
        ("./agents.py:AGE", "nobody here knows how to ask"),
        ("./agents.py:three", "takes 3 arguments"),
        ("http://example.com/ask", "write https://"),
        ("https://user:secret@example.com", "call the service from a function of your own"),
    ],
)
def test_what_cannot_run_is_a_fault_at_the_line_that_says_it(tmp_path: Path, run: str, words: str):
    code = AGENTS + "AGE = 7\n\ndef three(a, b, c): ...\n"
    deck = write_deck(tmp_path, {"flights": run}, code)
    with pytest.raises(DeckError, match=r"flights\.yaml:3: ") as error:
        load_deck(deck)
    assert words in str(error.value)


def test_an_orchestrator_runs_nothing_and_a_card_without_either_is_a_fault(tmp_path: Path):
    deck = write_deck(tmp_path, {"flights": "./agents.py:flights"}, AGENTS)
    lead = (deck / "lead.yaml").read_text()
    (deck / "lead.yaml").write_text(lead.replace("model: offline", "run: ./agents.py:flights"))
    (deck / "flights.yaml").write_text("id: flights\ndescription: Flies.\n")
    with pytest.raises(DeckError) as error:
        load_deck(deck)
    assert "lead.yaml:3: the orchestrator routes with a model" in str(error.value)
    assert "no model: name a key of models.yaml, or an agent of your own by `run:`" in str(
        error.value
    )


async def test_a_monolith_and_a_model_say_that_they_do_not_go_with_it(tmp_path: Path):
    deck = write_deck(tmp_path, {"flights": "./agents.py:flights"}, AGENTS)
    async with kit_over(deck, "flights") as kit:
        with pytest.raises(BindError, match="choose another pattern"):
            kit.stages.team(PATTERNS["monolith"])
    with pytest.raises(BindError, match=r"runs \./agents\.py:flights and takes no model"):
        async with open_kit(OFFLINE, deck=load_deck(deck), models={"flights": "offline"}):
            pass


# Services over HTTP


async def _service(request: Any) -> Any:
    body = await request.json()
    match request.url.path:
        case "/json":
            return JSONResponse(
                {
                    "text": f"{body['user_id']} of {body['tenant_id']} asked: {body['message']}",
                    "calls": [{"name": "look_up", "result": "seven"}, "desk"],
                    "usage": {"input_tokens": 5, "output_tokens": 2, "cost": 0.01},
                    "more": "is left unread",
                }
            )
        case "/text":
            return PlainTextResponse("Plain words.")
        case "/events":
            return StreamingResponse(_events(), media_type="text/event-stream")
        case "/hangs":
            return StreamingResponse(_hang(request.app), media_type="text/event-stream")
        case "/broken":
            return JSONResponse({"answer": 42})
        case _:
            return PlainTextResponse("zx-secret stack trace", status_code=503)


async def _events() -> AsyncGenerator[str, None]:
    events = [
        {"piece": "In "},
        {"call": {"name": "look_up", "fault": "no such thing"}},
        {"piece": "pieces."},
        {"text": "In pieces.", "usage": {"cost": 0.5}},
    ]
    for event in events:
        yield f"data: {json.dumps(event)}\n\n"


async def _hang(app: Starlette) -> AsyncGenerator[str, None]:
    try:
        yield f"data: {json.dumps({'piece': 'wait'})}\n\n"
        app.state.begun.set()
        await asyncio.sleep(600)
    finally:
        app.state.gone.set()


def _app() -> Starlette:
    return Starlette(routes=[Route("/{path}", _service, methods=["POST"])])


@pytest.mark.realtime
async def test_a_service_answers_as_json_as_text_and_as_events(tmp_path: Path):
    async with serving(_app()) as url:
        runs = {"one": f"{url}/json", "two": f"{url}/text", "three": f"{url}/events"}
        reply = await ask(write_deck(tmp_path, runs), *runs)
    answers = {outcome.agent: outcome for outcome in reply.outcomes}
    texts = [answer.text for answer in answers.values() if isinstance(answer, Answer)]
    assert texts == ["visitor of local asked: Please help me.", "Plain words.", "In pieces."]
    assert answers["one"].usage == Usage(input_tokens=5, output_tokens=2, tool_calls=2, cost=0.01)
    assert answers["two"].usage == Usage(untold_tokens=1, untold_costs=1)
    assert answers["three"].usage == Usage(tool_calls=1, cost=0.5, untold_tokens=1)
    calls = [(body.agent, body.tool, body.error) for body in bodies(reply, ToolEnded)]
    assert sorted(calls, key=str) == [
        ("one", "desk", None),
        ("one", "look_up", None),
        ("three", "look_up", "no such thing"),
    ]


@pytest.mark.realtime
async def test_a_service_that_fails_or_is_not_there_is_a_failure_with_its_kind(tmp_path: Path):
    async with serving(_app()) as url:
        runs = {
            "broken": f"{url}/broken",
            "down": f"{url}/down",
            "gone": "http://127.0.0.1:9/ask",
            "fine": f"{url}/text",
        }
        reply = await ask(write_deck(tmp_path, runs), "broken", "down", "gone")
        assert isinstance(reply.outcomes[0], Failure)
    assert [failure.reason for failure in failures(reply)] == [
        "contract_violation",
        "unavailable",
        "unavailable",
    ]
    assert "zx-" not in reply.text


@pytest.mark.realtime
async def test_stop_closes_the_connection_to_the_service(tmp_path: Path):
    app = _app()
    app.state.begun = asyncio.Event()
    app.state.gone = asyncio.Event()
    async with serving(app) as url:
        deck = write_deck(tmp_path, {"slow": f"{url}/hangs"})
        async with kit_over(deck, "slow") as kit:
            turn = kit.ask("Please help me.", kit.session("s"))
            await asyncio.wait_for(app.state.begun.wait(), 60)
            turn.cancel()
            assert (await turn).status == "cancelled"
            await asyncio.wait_for(app.state.gone.wait(), 60)


async def test_a_forged_reply_cannot_reach_what_runs_elsewhere_and_the_turn_says_so(tmp_path: Path):
    code = "import asyncio\nasync def flights(message):\n    await asyncio.sleep(5)\n    return 'At noon.'\n"
    deck = write_deck(tmp_path, {"flights": "./agents.py:flights"}, code)
    async with kit_over(deck, "flights", faults=True) as kit:
        turn = kit.ask("Please help me.", kit.session("s"))
        await asyncio.sleep(1)
        turn.break_agent(Fault(where="flights", kind="foreign_principal"))
        reply = await turn
    assert reply.text == "At noon."
    [line] = fault_lines(advance(TurnView(), reply.events))
    assert line == (
        "Flights is sent somebody else's data, from 1.0 s on (changed nothing in this turn)"
    )
