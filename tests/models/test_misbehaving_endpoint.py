"""An endpoint misbehaves: the user reads plain words, the developer one line, and the turn ends inside its budget."""

import json
import logging
import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kit.core.bodies.call import ModelEnded
from kit.core.bodies.speech import Acknowledged
from kit.core.card import Policy
from kit.core.errors import STOP
from kit.core.model import ModelSpec
from kit.core.outcome import Failure, tell
from kit.models.openai import chat_model
from kit.models.scripted import ScriptedModel
from kit.runtime.handle import Reply
from kit.runtime.team import bind
from kit.runtime.turn import run_turn
from kit.stores.sqlite import SqliteStore
from kit.ui.shared.turn_facts import facts
from kit.ui.shared.turn_fold import advance
from kit.ui.shared.turn_view import TurnView
from kit.ui.traces.routing_decision import decision_html
from tests.cli.test_cli import run
from tests.effort import allowance
from tests.kits import ALICE, SmallKit, answering, asks, bodies, small_deck, stitched
from tests.loopback_openai import Hang, Loopback, Raw, Refuse, Say
from tests.loopback_openai import Reply as Script

pytestmark = pytest.mark.realtime

KEY = "sk-loopback-4711-secret"
IMPATIENT = 0.25
"""Seconds that a model has for one call where the endpoint lets it wait."""
PATIENT = 30.0
"""Seconds where it answers: what a busy machine needs for that is no fault of the endpoint."""
A_LONG_WAIT = 60.0
SSE = "text/event-stream"
NO_CHOICES = (
    '{"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": []}'
)


@dataclass(frozen=True)
class Fault:
    """A script of misbehaviour, the HTTP status of the developer's line, and what else that line says."""

    script: tuple[Script, ...]
    words: str
    status: int | None = None


FAULTS = {
    "401": Fault(
        (Refuse(401, f"Incorrect API key: {KEY}"),),
        "set OPENAI_API_KEY to a key of this endpoint",
        401,
    ),
    "404": Fault((Refuse(404, "no such model"),), "check the model's `name` and the URL", 404),
    "429 for longer than anybody waits": Fault(
        (Refuse(429, "too many", 60),), "too many; .* it asks for 60 s", 429
    ),
    "429 without credit": Fault(
        (Refuse(429, "You exceeded your current quota", code="insufficient_quota"),),
        "the account has no credit left",
        429,
    ),
    "400 for a long request": Fault(
        (Refuse(400, "too many tokens", code="context_length_exceeded"),),
        "the request is longer than the model reads",
        400,
    ),
    "400 for stream_options": Fault(
        (Refuse(400, "Unrecognized request argument supplied: stream_options"),),
        "set `stream: false` in the model's entry",
        400,
    ),
    "an error inside the stream": Fault(
        (Raw('data: {"error": {"message": "worker crashed", "code": 500}}\n\n', SSE),),
        "worker crashed; the endpoint ended its stream with this error",
    ),
    "500": Fault(
        (Refuse(500, "boom"), Refuse(500, "boom")), "boom; the server failed: try again later", 500
    ),
    "HTML": Fault(
        (Raw("<html>gateway</html>", "text/html"),), "this is no answer of the API: check the URL"
    ),
    "broken JSON": Fault((Raw('data: {"choices": [{\n\n', SSE),), "this is no answer of the API"),
    "empty choices": Fault(
        (Raw(f"data: {NO_CHOICES}\n\ndata: [DONE]\n\n", SSE),),
        "the reply holds neither text nor calls",
    ),
    "no stream": Fault(
        (Say(["Fine."], whole=True),), "set `stream: false` if the endpoint cannot stream"
    ),
    "cut stream": Fault(
        (Say(["The beans "], broken=True),), "the connection broke in the middle of the reply"
    ),
    "hang": Fault((Hang(),), "no answer in time; raise the budgets of the deck"),
}


REASONS = {
    "401": "exception",
    "hang": "timeout",
    "429 for longer than anybody waits": "rate_limited",
}
"""Why a sub-agent whose endpoint does this has no answer."""


async def ask(
    server: Loopback,
    place: str,
    budget: float = PATIENT,
    composed: str = "",
    default: str | None = None,
    **fields: Any,
) -> Reply:
    """One turn in which the orchestrator or its sub-agent speaks over the server."""
    spec = ModelSpec.model_validate({"key": "small", "provider": "openai", **fields})
    model = (chat_model(spec, api_key=KEY, base_url=server.url), spec)
    times: Any = {"turn_budget_ms": 4000 * budget, "model_call_budget_ms": 1000 * budget}
    own = Policy(time_budget_ms=round(1000 * budget))
    deck = small_deck(["shop"], default_sub_agent=default, defaults=own, **times)
    models = {"orchestrator": model, "shop": answering("Beans are 4 euros.")}
    if place == "sub-agent":
        line = composed or stitched
        models = {"orchestrator": ScriptedModel(asks("shop"), line, line), "shop": model}
    return await run_turn(
        "what do beans cost?", ALICE, SmallKit(bind(deck, models), SqliteStore(":memory:"))
    )


@pytest.mark.req("K-4", "PC2-S5.8b")
@pytest.mark.parametrize(
    ("name", "place"),
    [*[(name, "orchestrator") for name in FAULTS], *[(name, "sub-agent") for name in REASONS]],
)
async def test_the_user_reads_plain_words_and_the_developer_one_line(
    server: Loopback, name: str, place: str, caplog: pytest.LogCaptureFixture
):
    fault, began = FAULTS[name], time.perf_counter()
    server.plays(*fault.script)
    reply = await ask(server, place, IMPATIENT if name == "hang" else PATIENT)
    assert time.perf_counter() - began < allowance(A_LONG_WAIT), "it ends inside its budget"
    assert reply.text.startswith("I wasn't able to") and not re.search(
        r"\d{3}|HTTP|http|API|model|Error|small", reply.text
    )
    lines = [record.getMessage() for record in caplog.records if record.name == "kit.model"]
    status = f"HTTP {fault.status}, " if fault.status else ""
    place_words = rf"model 'small' at {re.escape(server.url)}(/chat/completions)?: {status}"
    assert len(lines) == 1 and re.match(
        rf"{place_words}.*{fault.words}.*\(trace {reply.turn_id}\)\Z", lines[0]
    ), lines
    if place == "sub-agent":
        (failure,) = reply.outcomes
        assert isinstance(failure, Failure) and failure.reason == REASONS[name]
    on_trace = [str(body.error) for body in bodies(reply, ModelEnded) if body.error]
    assert [line.removeprefix(f"{STOP}: ") for line in on_trace] == [
        lines[0].partition(" (trace")[0]
    ]
    assert KEY not in lines[0] and "\n" not in lines[0]


@pytest.mark.req("K-4")
async def test_neither_page_nor_trace_says_that_a_failed_routing_call_was_an_answer(
    server: Loopback,
):
    server.plays(Refuse(401, "no"))
    view = advance(TurnView(), (await ask(server, "orchestrator")).events)
    words = " ".join(fact.text for fact in facts(view)) + decision_html(view)
    assert not re.search(
        "answered directly|nothing is missing|without asking", words, re.IGNORECASE
    )
    assert "it ended before anybody was asked" in words


@pytest.mark.req("K-4")
def test_the_terminal_shows_the_line_on_stderr_and_not_in_the_answer(
    server: Loopback,
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(
        logging.getLogger(), "handlers", []
    )  # as where nobody catches what is logged
    server.key = "another"
    url = server.url.replace("http://", "http://me:password@")
    variables = {"OPENAI_BASE_URL": url, "OPENAI_API_KEY": KEY, "KIT_MODEL": "local"}
    result = run("ask", "How many points do I have?", **variables)
    assert result.returncode == 1
    assert re.match(
        r"model 'local' at http://127\S+: HTTP 401, .*set OPENAI_API_KEY.* \(trace \w+\)\n\Z",
        result.stderr,
    )
    assert "password" not in result.stderr + result.stdout and "401" not in result.stdout


async def test_only_the_first_failure_of_a_kind_is_logged_and_every_trace_has_its_own(
    server: Loopback,
    caplog: pytest.LogCaptureFixture,
):
    spec = ModelSpec(key="small", provider="openai")
    on_trace: list[str] = []
    server.plays(*[Refuse(401, "no")] * 2, Refuse(404, "gone"))
    model = (chat_model(spec, api_key=KEY, base_url=server.url), spec)
    kit = SmallKit(bind(small_deck([]), {"orchestrator": model}), SqliteStore(":memory:"))
    for _ in range(3):
        reply = await run_turn("hi there", ALICE, kit)
        on_trace += [str(body.error) for body in bodies(reply, ModelEnded)]
    logged = [record.getMessage() for record in caplog.records if record.name == "kit.model"]
    assert [re.findall(r"HTTP (\d+)", line) for line in logged] == [["401"], ["404"]]
    assert [re.findall(r"HTTP (\d+)", line) for line in on_trace] == [["401"], ["401"], ["404"]]


# Waiting


async def test_a_pause_that_fits_into_the_budget_is_kept(server: Loopback):
    server.plays(Refuse(429, "too many", 0.3), Say(["Beans are 4 euros."]))
    began = time.perf_counter()
    reply = await ask(server, "orchestrator")
    assert time.perf_counter() - began >= 0.3 and len(server.requests) == 2
    assert (reply.status, reply.text, reply.truncated) == ("ok", "Beans are 4 euros.", False)


# Refusals


DECLINED = "I can't help with building a bomb."


def declines() -> Raw:
    """A reply that holds the words of a refusal, and no text."""
    about = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    deltas = [
        {"role": "assistant", "content": ""},
        {"refusal": DECLINED[:9]},
        {"refusal": DECLINED[9:]},
    ]
    choices: list[dict[str, Any]] = [{"index": 0, "delta": delta} for delta in deltas]
    choices.append({"index": 0, "delta": {}, "finish_reason": "stop"})
    lines = [json.dumps({**about, "choices": [choice]}) for choice in choices]
    return Raw("".join(f"data: {line}\n\n" for line in [*lines, "[DONE]"]), SSE)


@pytest.mark.parametrize(
    "composed",
    ["", f"I wasn't able to get an answer about shop: it declined, in these words: {DECLINED}"],
    ids=["the kit says so", "the orchestrator passes its words on"],
)
async def test_the_words_of_a_sub_agents_refusal_are_kept_and_can_be_said(
    server: Loopback, composed: str
):
    server.plays(declines())
    reply = await ask(server, "sub-agent", composed=composed)
    (outcome,) = reply.outcomes
    assert isinstance(outcome, Failure)
    assert (outcome.reason, outcome.suggestion) == ("refusal", DECLINED)
    assert DECLINED in tell(outcome) and reply.status == "failed"
    [mended] = bodies(reply, Acknowledged)
    assert (mended.path == "composed") == bool(composed), "what owns up to it is not mended"
    assert composed in reply.text


async def test_what_the_orchestrator_refuses_is_asked_of_nobody_and_the_user_reads_why(
    server: Loopback,
):
    server.plays(declines())
    reply = await ask(server, "orchestrator", default="shop")
    assert (reply.status, reply.text) == ("failed", DECLINED)
    assert not reply.outcomes, "the default sub-agent is not asked all the same"


# Cut answers


@pytest.mark.parametrize(
    ("place", "api", "say", "ending"),
    [
        ("orchestrator", "chat", Say(["Beans are 4 euros and"], cut=True), "length"),
        ("sub-agent", "chat", Say(["Beans are 4 euros and"], lost=True), "cut_off"),
        ("sub-agent", "responses", Say(["Beans are 4 euros and"], cut=True), "incomplete"),
        ("orchestrator", "responses", Say(["Beans are 4 euros and"], lost=True), "cut_off"),
        (
            "orchestrator",
            "chat",
            Say(["Beans are 4 euros and"], filtered=True),
            "content_filter",
        ),
    ],
)
async def test_a_cut_answer_is_truncated_and_says_so(
    server: Loopback, place: str, api: str, say: Say, ending: str
):
    server.plays(say)
    reply = await ask(server, place, api=api)
    # Who breaks off before anybody was asked has answered nothing whole.
    assert reply.status == ("ok" if place == "sub-agent" else "failed") and reply.truncated
    assert (
        reply.text.startswith("Beans are 4 euros and")
        and "This answer was cut off before its end" in reply.text
    )
    assert ending in [body.finish_reason for body in bodies(reply, ModelEnded)]
    assert [outcome.kind == "answer" and outcome.truncated for outcome in reply.outcomes] == [
        True
    ] * (place == "sub-agent")


@pytest.mark.parametrize("ending", ["stop", "length", "cut_off"])
@pytest.mark.parametrize("by_schema", [True, False])
async def test_an_answer_by_schema_is_cut_where_its_endpoint_says_so_alone(
    server: Loopback, ending: str, by_schema: bool
):
    """Also where the model answers in plain text all the same."""
    text = "Which beans do you mean?"
    words = json.dumps({"say": text, "calls": []}) if by_schema else text
    pieces = [words[:9], words[9:]]
    server.plays(Say(pieces, cut=ending == "length", lost=ending == "cut_off"))
    reply = await ask(server, "orchestrator", routing="json_schema")
    assert reply.text.startswith(text)
    assert ("cut off" in reply.text) == reply.truncated == (ending != "stop")
    [ended] = bodies(reply, ModelEnded)
    assert ended.finish_reason == ending


def test_the_results_of_a_grid_say_which_answers_were_cut(server: Loopback, tmp_path: Path):
    case = {"kind": "small_talk", "turns": [{"user": "hello", "expected_sub_agents": []}]}
    cases = [json.dumps({"id": name, **case}) for name in ("a", "b")]
    (tmp_path / "cases.jsonl").write_text("\n".join(cases))
    server.plays(Say(["Hello and"], cut=True), Say(["Hello."]))
    (tmp_path / "grid.yaml").write_text(f"""
models: [mine]
specs: {{mine: {{provider: openai, base_url: "{server.url}", params: {{temperature: 0}}}}}}
cases: [{{file: cases.jsonl}}]
sub_agents: stubs
scorers: [exact]
limits: {{concurrency: 1}}
settings: {{"off": {{guards: {{fastpath: false}}}}}}
""")
    out = tmp_path / "out"
    played = run("grid", str(tmp_path / "grid.yaml"), "--out", str(out), "--workers", "1")
    assert played.returncode == 0, played.stderr
    rows = [json.loads(line) for line in (out / "results.jsonl").read_text().splitlines()]
    assert sorted(row.get("truncated", False) for row in rows) == [False, True]
    assert [request["temperature"] for request in server.requests] == [0, 0]
