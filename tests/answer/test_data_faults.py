"""What becomes of a sub-agent whose lookups fail: words stand, reasons stay apart, no stranger's data twice."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from langchain_core.tools import BaseTool, StructuredTool

from kit.core.bodies.call import AgentError
from kit.core.card import AgentCard
from kit.core.outcome import PARTLY, WITHOUT, Answer, Failure, Outcome, Reason
from kit.metrics.summary import metrics
from kit.models.scripted import Line, ScriptedModel
from kit.runtime.call_tool import NO_SUCH_TOOL
from kit.runtime.turn import Reply, run_turn
from kit.tools.tool import ToolResult
from tests.kits import ALICE, SmallKit, asks, bodies, small_kit, stitched

TIP = "Most stores refund an unopened item within a month."
ASKED = Line(calls=[("find", {"what": "coffee"})])


def found(what: str, results: Iterator[ToolResult | Exception], made: list[str]) -> BaseTool:
    """A tool that answers as it is told to, and notes what it was asked."""

    async def find(what: str = "") -> tuple[str, ToolResult]:
        made.append(what)
        result = next(results)
        if isinstance(result, Exception):
            raise result
        return result.text, result

    return StructuredTool.from_function(
        coroutine=find, name=what, description="Finds.", response_format="content_and_artifact"
    )


def none(fault: Reason = "unavailable") -> ToolResult:
    return ToolResult(text="This data is unavailable right now.", fault=fault, detail="raw-9")


async def shop(
    lines: Sequence[Line | str],
    *results: ToolResult | Exception,
    others: Sequence[str] = (),
    lead: Any = None,
) -> tuple[Reply, list[str], SmallKit]:
    """A turn in which the shop says these lines over these results; the others say the same."""
    made: list[str] = []
    agents = ("shop", *others)
    cards = [
        AgentCard(id=name, description=f"About {name}.", model="offline", tools=("find",))
        for name in agents
    ]
    models = {name: ScriptedModel(*lines) for name in agents}
    kit = small_kit(
        lead or [asks(*agents), stitched],
        models,
        {"find": found("find", iter(results), made)},
        cards,
    )
    return await run_turn("coffee please", ALICE, kit), made, kit


async def outcome(lines: Sequence[Line | str], *results: ToolResult | Exception) -> Outcome:
    return (await shop(lines, *results))[0].outcomes[0]


@pytest.mark.req("PC2-S5.8")
async def test_words_survive_when_every_lookup_failed_and_carry_a_reservation():
    reply, _, kit = await shop([ASKED, TIP], none())
    [answer] = reply.outcomes
    assert (
        isinstance(answer, Answer) and answer.text == TIP and answer.data_faults == ("unavailable",)
    )
    assert answer.reservation == WITHOUT and TIP in reply.text and "may be incomplete" in reply.text
    [line] = reply.routing.outcomes
    assert (line.result, reply.routing.invoked) == ("partial", ("shop",))
    assert [(body.axis, body.is_final) for body in bodies(reply, AgentError)] == [("data", False)]
    assert metrics(kit.store).number("failures_total", "axis 2: data") == 1


@pytest.mark.parametrize(
    "text",
    [
        "",
        "I could not look that up right now.",
        "Sorry, the data is unavailable. Please try again later!",
        "It costs 4711 points.",
    ],
)
async def test_a_sub_agent_that_its_data_left_with_nothing_to_say_has_failed(text: str):
    failure = await outcome([ASKED, text], none("timeout"))
    assert isinstance(failure, Failure) and (failure.axis, failure.reason) == ("data", "timeout")


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        (RuntimeError("raw"), "exception"),
        (TimeoutError("raw"), "timeout"),
        (none("contract_violation"), "contract_violation"),
    ],
)
async def test_reasons_keep_what_a_tool_raised_a_time_out_a_contract_and_an_envelope_apart(
    result: ToolResult | Exception, reason: str
):
    failure = await outcome([ASKED, ""], result)
    assert isinstance(failure, Failure) and (failure.axis, failure.reason) == ("data", reason)


async def test_data_that_was_asked_for_again_and_came_takes_the_reservation_away_but_is_counted():
    reply, made, kit = await shop(
        [ASKED, ASKED, "Two coffee deals."], none("timeout"), ToolResult(text="two")
    )
    [answer] = reply.outcomes
    assert isinstance(answer, Answer) and made == ["coffee", "coffee"]
    assert (answer.data_faults, answer.reservation) == (
        ("timeout",),
        None,
    ) and reply.text == "Two coffee deals."
    assert (
        reply.routing.outcomes[0].result == "success"
        and metrics(kit.store).number("failures_total", "axis 2: data") == 1
    )


async def test_another_lookup_that_came_does_not_make_good_the_one_that_failed():
    other = Line(calls=[("find", {"what": "tea"})])
    answer = await outcome([ASKED, other, "Two tea deals."], none(), ToolResult(text="two"))
    assert isinstance(answer, Answer) and answer.reservation == PARTLY


@pytest.mark.req("PC2-FR-12b", "PC2-FR-12")
async def test_a_lookup_that_met_a_foreign_principal_is_made_again_in_no_round_and_by_nobody():
    rounds = [asks("shop"), asks("shop", query="coffee again"), asks("play"), stitched]
    lines = [ASKED, ASKED, "", ASKED, ""]
    reply, made, _ = await shop(
        lines, none("principal_mismatch"), ToolResult(text="mine"), others=("play",), lead=rounds
    )
    assert made == ["coffee"] and len(reply.outcomes) == 3
    assert all(isinstance(o, Failure) and o.reason == "principal_mismatch" for o in reply.outcomes)


@pytest.mark.parametrize(
    ("text", "is_error"),
    [
        ("Error 503: connect to 10.20.30.40:5432 failed", True),
        ("503 Service Unavailable", True),
        ("HTTP 429", True),
        ("ConnectionError: db.internal:5432", True),
        ('Traceback (most recent call last):\n  File "a.py", line 3', True),
        ("Error: HTTP 503 from the backend, nothing was written", True),
        ("Error: HTTP 500 Internal Server Error at gateway", True),
        (
            "Error 503: ConnectionError: HTTPConnectionPool(host='x', port=443): Max retries exceeded",
            True,
        ),
        ("Traceback (most recent call last): ValueError: x", True),
        ("Error: HTTP 404 means that there is no such page.", False),
        ("Error 500: a ConnectionError behind it says that the shop is down.", False),
        ("Error: the name is written with one l.", False),
        ("Traceback (most recent call last) is how Python begins to tell of an error.", False),
        ("Error 404 means that there is no such page.", False),
        ("Error 503: the shop is overloaded, so wait a minute and try again.", False),
        ("HTTP 503 came from the shop between 10:30 and 11:00; it has been up since then.", False),
        ("Your order 503 is on its way.", False),
        ("Error codes are listed on the box.", False),
    ],
)
async def test_the_error_of_a_machine_is_no_answer_and_what_explains_one_is(
    text: str, is_error: bool
):
    assert isinstance(await outcome([text]), Failure) == is_error


@pytest.mark.parametrize(
    ("text", "is_answer"),
    [
        ("One moment.", False),
        ("Sure! Just a second, please.", False),
        ("Let me check that for you. One moment.", False),
        ("Hold on, I'll look into it.", False),
        ("Un momento, por favor.", False),
        ("Voy a comprobarlo.", False),
        ("One moment. You have 900 points.", True),
        ("You have 900 points, let me check that.", True),
        ("A Moment in Time is a book by Ana Ray.", True),
        ("Let me look at your options: tea and coffee.", True),
    ],
)
async def test_a_reply_that_only_puts_off_is_no_answer(text: str, is_answer: bool):
    assert isinstance(await outcome([text]), Answer) == is_answer


async def test_an_agent_that_only_hands_on_what_the_kit_told_its_model_has_not_answered():
    repeated = f"{NO_SUCH_TOOL} {NO_SUCH_TOOL}"
    failure = await outcome([repeated])
    assert isinstance(failure, Failure) and failure.reason == "unanswerable"
    assert not isinstance(await outcome([f"{NO_SUCH_TOOL} Coffee is 200 points."]), Failure)


async def test_a_call_that_a_lead_wrote_into_its_text_and_nobody_made_is_no_answer():
    written = 'I will look. [ask_shop({"query": "coffee", "intent_count": 1})]'
    kit = small_kit([written], {"shop": ScriptedModel("Coffee is 200 points.")})
    reply = await run_turn("what is coffee", ALICE, kit)
    assert reply.status == "failed" and not reply.outcomes
    assert "wasn't able to" in reply.text
    kit = small_kit(["Hello! I can ask the shop."], {"shop": ScriptedModel("")})
    assert (await run_turn("hello", ALICE, kit)).status == "ok"


@pytest.mark.parametrize("text", ["NO_ANSWER", "I'm sorry, but I can't help with that."])
async def test_a_refusal_in_prose_is_no_answer(text: str):
    failure = await outcome([text])
    assert isinstance(failure, Failure) and (failure.axis, failure.reason) == (
        "invocation",
        "unanswerable",
    )
