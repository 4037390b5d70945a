"""The contract of a sub-agent: what goes in, what shape comes out, who answers when its model
fails; checked, not prompted."""

import datetime
import json
from collections.abc import Mapping
from typing import Any, cast

import pytest
from langchain_core.messages import AIMessage
from langchain_core.tools import StructuredTool, tool

from kit.compose.deck import Deck
from kit.core.bodies.call import AgentStarted, ModelEnded, ModelStarted, ToolStarted
from kit.core.card import AgentCard, EvalPolicy, Handoff, HandoffField, Policy, ToolCase, ToolGrant
from kit.core.context import OPERATOR
from kit.core.errors import DeckError
from kit.core.model import ModelSpec
from kit.core.outcome import Answer, ComponentPayload, Failure, Outcome, tell
from kit.models.scripted import Line, ScriptedModel
from kit.runtime.agents.contract import Refusal, refusal
from kit.runtime.agents.llm_agent import LLMAgent
from kit.runtime.team import bind
from kit.runtime.turn import Reply, run_turn
from kit.stores.sqlite import SqliteStore
from kit.tools.tool import ToolResult
from tests.kits import (
    ALICE,
    SmallKit,
    answering,
    asks,
    bodies,
    failing,
    failures,
    small_deck,
    small_kit,
    spans,
    stitched,
)

OFFER = {"id": "mg-1", "title": "Iron Wolf"}
ITEM = {
    "type": "object",
    "properties": {
        "title_id": {"type": "string"},
        "explanation": {"type": "string", "maxSentences": 2},
        "confidence": {"type": "number", "minimum": 0, "maximum": 1},
    },
    "required": ["title_id", "explanation", "confidence"],
    "additionalProperties": False,
}
MANGA = AgentCard(
    id="explainer",
    description="Explains why a title fits.",
    model="offline",
    version="1.2",
    handoff=Handoff(
        closed=True,
        max_query_tokens=500,
        min_confidence=0.4,
        fields={
            "candidate_title_ids": HandoffField(type="array", max_items=20),
            "user_locale": HandoffField(source="locale"),
            "user_prefs_summary": HandoffField(max_tokens=800),
            "email": HandoffField(pii=True),
        },
        output_schema={
            "type": "object",
            "properties": {"ranked_explanations": {"type": "array", "items": ITEM}},
            "required": ["ranked_explanations"],
            "additionalProperties": False,
        },
    ),
    policy=Policy(
        tokens_in=4000,
        tokens_out=1500,
        time_budget_ms=3500,
        max_tool_calls=5,
        max_recursion_depth=0,
    ),
)
"""The recommendation explainer with the values of its design (SO-23)."""
CASES = tuple(
    ToolCase(tool="refund", mode=mode, ask="refund me", never=("refunded",))
    for mode in ("returns_nothing", "fails")
)
EVALUATED = EvalPolicy(judge="rule", rubric="Claims no refund.", tool_cases=CASES)


def ranked(explanation: str = "It is dark.", confidence: object = 0.9, **more: object) -> str:
    return json.dumps(
        {
            "ranked_explanations": [
                {"title_id": "t1", "explanation": explanation, "confidence": confidence, **more}
            ]
        }
    )


def asking(args: Mapping[str, Any]) -> Line:
    return Line(
        "Let me look.", calls=[("ask_explainer", {"query": "q", "intent_count": 1, **args})]
    )


async def explain(
    said: Line | str, args: Mapping[str, Any] | None = None, card: AgentCard = MANGA
) -> tuple[Outcome, Reply, str]:
    """The explainer's outcome for a reply of its model, the turn, and the system prompt it saw."""
    model = ScriptedModel(lambda _: said)
    reply = await run_turn(
        "one", ALICE, small_kit([asking(args or {}), stitched], {"explainer": model}, cards=[card])
    )
    return reply.outcomes[0], reply, str(model.seen[0][0].content) if model.seen else ""


def started(reply: Reply) -> AgentStarted:
    return bodies(reply, AgentStarted)[0]


@pytest.mark.req("SO-3", "SO-23")
async def test_only_declared_fields_cross_within_their_limits_and_the_trace_says_what_did():
    args = {
        "query": "q" * 2001,
        "candidate_title_ids": [f"id{i}" for i in range(21)],
        "user_prefs_summary": "p" * 3201,
        "prior_context": "all that was said",
        "secret": "never",
        "user_locale": "xx",
    }
    outcome, reply, system = await explain(ranked(), args)
    assert isinstance(outcome, Answer)
    body = started(reply)
    assert len(body.query) == 2000
    assert body.fields == {
        "candidate_title_ids": [f"id{i}" for i in range(20)],
        "user_prefs_summary": "p" * 3200,
        "user_locale": "en-GB",
    }
    assert "id19" in system
    assert not any(words in system for words in ("id20", "never", "all that was said"))
    limited = ["candidate_title_ids", "user_prefs_summary", "query", "prior_context"]
    assert [note.split()[0] for note in body.limited] == limited
    span = spans(reply, "agent")[0]
    assert span.attributes["fields"] == body.fields and len(span.attributes["limited"]) == 4


@pytest.mark.req("SO-3")
@pytest.mark.parametrize(
    ("value", "held"),
    [
        ({"size": "L"}, True),
        ({}, False),
        ({"size": "XXL"}, False),
        ({"size": "LL"}, False),
    ],
)
async def test_a_required_field_that_is_missing_or_wrong_is_refused_before_any_model_sees_it(
    value: Any, held: bool
):
    size = HandoffField(required=True, enum=("L", "LL"), max_length=1)
    card = AgentCard(
        id="explainer", description="d", model="offline", handoff=Handoff(fields={"size": size})
    )
    outcome, _, system = await explain("fine", value, card)
    assert isinstance(outcome, Answer) == held and bool(system) == held
    assert held or (
        isinstance(outcome, Failure)
        and outcome.reason == "contract_violation"
        and "size" in outcome.detail
    )


@pytest.mark.req("SO-3")
async def test_who_asks_where_after_what_and_what_was_shown_reach_no_closed_agent_that_does_not_declare_it():
    shown = (ComponentPayload(type="offer", payload=OFFER),)

    def look() -> tuple[str, ToolResult]:
        """Looks."""
        return "Iron Wolf", ToolResult(text="Iron Wolf", components=shown)

    offer = StructuredTool.from_function(look, response_format="content_and_artifact")
    seller = AgentCard(id="shop", description="d", model="offline", tools=("look",))
    shop = ScriptedModel(Line(calls=[("look", {})]), "Here it is.")
    closed, lead = answering(ranked()), ScriptedModel(asks("shop"), stitched, asking({}), stitched)
    models = {"explainer": closed, "shop": shop}
    kit = small_kit(lead, models, {"look": offer}, cards=[MANGA, seller])
    await run_turn("one", ALICE, kit)
    reply = await run_turn("what of the first one?", ALICE, kit)
    first, routing, second = (
        str(model.seen[call][0].content) for model, call in ((shop, 0), (lead, 2), (closed, 0))
    )
    assert "User: alice" in first and "Leeds" in first
    assert "ask_shop" in routing and "Iron Wolf" in routing
    private = ("alice", "Leeds", "ask_shop", "Iron Wolf", "User:")
    assert not any(word in second for word in private)
    assert second.endswith("\n\nDate: 2026-11-01\nuser_locale: en-GB")
    assert started(reply).fields == {"user_locale": "en-GB"}, "and what did cross is on the trace"


@pytest.mark.req("SO-22")
async def test_a_personal_field_reaches_the_agent_and_no_event_beside_the_answer():
    @tool
    def look_up(who: str) -> str:
        """Finds somebody."""
        return f"found {who}"

    card = MANGA.model_copy(update={"tools": ("look_up",)})
    mail = "reader@example.org"
    looking = Line(calls=[("look_up", {"who": f"<{mail}>"})])
    model = ScriptedModel(looking, Line(ranked(f"For {mail}.")))
    call = asking({"email": mail, "query": f"mail it to {mail}"})
    kit = small_kit([call, Line("Done.")], {"explainer": model}, {"look_up": look_up}, cards=[card])
    reply = await run_turn("one", ALICE, kit)
    (system, question), (*_, result) = model.seen[0][:2], model.seen[1]
    assert all(mail in str(message.content) for message in (system, question, result))
    assert isinstance(reply.outcomes[0], Answer) and mail in reply.outcomes[0].text
    told = ("text", "text_replaced", "completed")  # what the user reads may name what the user gave
    for event in reply.events:
        assert event.kind in told or mail not in event.model_dump_json()
    assert started(reply).query == "mail it to [personal]"
    assert started(reply).fields["email"] == "[personal]"


@pytest.mark.req("SO-4", "SO-23")
@pytest.mark.parametrize(
    "text",
    [
        "It is dark.",
        "[" * 5_000,
        ranked("One. Two. Three."),
        ranked(confidence=1.5),
        ranked(extra="x"),
    ],
)
async def test_an_answer_of_another_shape_is_a_contract_violation(text: str):
    card = MANGA.model_copy(update={"policy": Policy()})
    outcome, reply, _ = await explain(text, card=card)
    assert isinstance(outcome, Failure) and (outcome.axis, outcome.reason) == (
        "invocation",
        "contract_violation",
    )
    assert outcome.detail and outcome.detail not in reply.text


@pytest.mark.req("SO-23", "SO-4")
@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (Line(ranked(), delay=3.6), "timeout"),
        (Line("x" * 6100), "budget"),
        (Line(calls=[("t", {})] * 6), "budget"),
        (Line(calls=[("t", {})] * 5), "budget"),
    ],
)
async def test_the_manga_limits_hold_whatever_the_model_does(line: Line, reason: str):
    outcome, reply, _ = await explain(line)
    assert isinstance(outcome, Failure) and outcome.reason == reason
    assert reply.usage.tool_calls == (5 if len(line.calls) == 5 else 0)
    assert outcome.timing and outcome.timing.seconds <= 3.5


def items(*confidences: float) -> str:
    """An answer of several items."""
    one_each = [json.loads(ranked(confidence=each)) for each in confidences]
    return json.dumps({"ranked_explanations": [one["ranked_explanations"][0] for one in one_each]})


SURE_BY_WORD = MANGA.model_copy(
    update={
        "handoff": Handoff(
            output_schema={
                "type": "object",
                "properties": {"text": {"type": "string"}, "confidence": {"type": "string"}},
            }
        )
    }
)


@pytest.mark.req("SO-4", "SO-8", "SO-23")
@pytest.mark.parametrize(
    ("card", "said", "answers"),
    [
        (MANGA, items(0.4), True),
        (MANGA, f"```json\n{ranked('Dr. Stone fits. So does this.')}\n```", True),
        (MANGA, items(0.9, 0.39), False),
        (SURE_BY_WORD, '{"text": "Maybe.", "confidence": "medium"}', True),
        (SURE_BY_WORD, '{"text": "Maybe.", "confidence": "low"}', False),
    ],
)
async def test_an_answer_is_as_sure_as_its_least_sure_item_and_low_confidence_is_a_suggestion(
    card: AgentCard, said: str, answers: bool
):
    outcome, _, system = await explain(said, card=card)
    if answers:
        assert isinstance(outcome, Answer) and ("maxSentences" in system) == (card is MANGA)
        return
    assert isinstance(outcome, Failure) and outcome.reason == "low_confidence"
    assert outcome.suggestion == said and said in tell(outcome)
    assert "not sure enough" in tell(outcome) and "at least" not in tell(outcome)


TEXTS = {
    "type": "object",
    "properties": {"text": {}, "parts": {}, "about": {}},
    "additionalProperties": True,
}


@pytest.mark.req("SO-8")
@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ({"text": "What year were you born?"}, "low_confidence"),
        ({"about": {"question": "Which one do you mean?"}}, "low_confidence"),
        ({"answered": False, "text": "Two fit."}, "unanswerable"),
        ({"text": "Two fit.", "refusal": "I may not say."}, "unanswerable"),
        ({"text": "I can't help with that."}, "unanswerable"),
        ({"text": "Two fit. Which one do you mean?"}, None),
    ],
)
async def test_a_closed_agent_asks_and_declines_through_no_field_of_its_schema(
    said: dict[str, Any], reason: str | None
):
    card = AgentCard(
        id="explainer",
        description="d",
        model="offline",
        handoff=Handoff(closed=True, output_schema=TEXTS),
    )
    outcome, _, _ = await explain(json.dumps(said), card=card)
    assert (outcome.reason if isinstance(outcome, Failure) else None) == reason


@pytest.mark.req("SO-8", "SO-1")
@pytest.mark.parametrize(
    ("handoff", "policy", "said"),
    [
        (
            Handoff(output_schema={"properties": {"a": {"properties": {"user_question": {}}}}}),
            Policy(),
            "a question to the user",
        ),
        (Handoff(output_schema={"type": "strng"}), Policy(), "no JSON Schema"),
        (Handoff(), Policy(cost=1), "price of model 'free' is not known"),
        (Handoff(), Policy(model_time_ms=1), "name one in fallback_model"),
    ],
)
def test_a_contract_that_could_not_be_held_is_a_deck_fault(
    handoff: Handoff, policy: Policy, said: str
):
    card = AgentCard(id="a", description="d", model="free", handoff=handoff, policy=policy)
    with pytest.raises(DeckError, match=said):
        Deck.of([card], required_blocks=(), models=[ModelSpec(key="free", provider="openai")])


@pytest.mark.req("SO-4")
def test_a_refusal_is_known_by_what_the_provider_says():
    spoken = AIMessage("", additional_kwargs={"refusal": "I can't help."})
    assert refusal(spoken) == Refusal("I can't help.", "I can't help.")
    assert refusal(AIMessage("half", response_metadata={"finish_reason": "content_filter"}))
    assert refusal(AIMessage([{"type": "refusal", "refusal": "No."}])) == Refusal("No.", "No.")
    assert refusal(AIMessage([{"type": "refusal"}])) == Refusal("refused")
    assert (
        refusal(
            AIMessage(
                "fine",
                additional_kwargs={"refusal": None},
                response_metadata={"finish_reason": "stop"},
            )
        )
        is None
    )


class Declining(ScriptedModel):
    async def _agenerate(self, *args: Any, **kwargs: Any) -> Any:
        result = await super()._agenerate(*args, **kwargs)
        result.generations[0].message.additional_kwargs["refusal"] = "I can't help."
        return result


def declining(text: str) -> ScriptedModel:
    return Declining(text, disable_streaming=True)  # pyright: ignore[reportCallIssue]


def backed(
    first: ScriptedModel, second: ScriptedModel, tools: dict[str, Any] | None = None, **policy: Any
) -> SmallKit:
    """A kit whose explainer has 2 s and a fallback model called `second`."""
    card = AgentCard(
        id="explainer",
        description="d",
        model="offline",
        fallback_model="offline",
        tools=tuple(tools or ()),
        policy=Policy(time_budget_ms=2000, **policy),
    )
    deck = small_deck(["explainer"], [card])
    second.name = "second"
    models = {
        "orchestrator": ScriptedModel(asking({}), stitched),
        "explainer": first,
        "explainer:fallback": second,
    }
    return SmallKit(bind(deck, models, tools or {}), SqliteStore(":memory:"))


def spoke(reply: Reply) -> list[tuple[str, bool]]:
    """Which models the explainer asked, and whether each answered."""
    ends = [body for body in bodies(reply, ModelEnded) if body.agent == "explainer"]
    return [(body.model, body.error is None) for body in ends]


@pytest.mark.req("SO-1")
@pytest.mark.parametrize("first", [failing(ConnectionError("503")), answering("late", 12.0)])
async def test_the_fallback_model_answers_once_after_an_error_or_a_time_out_and_the_span_says_so(
    first: ScriptedModel,
):
    kit = backed(first, answering("Second here.", 0.4), model_time_ms=1500)
    reply = await run_turn("one", ALICE, kit)
    [outcome] = reply.outcomes
    assert isinstance(outcome, Answer) and outcome.text == "Second here."
    assert spoke(reply) == [("scripted", False), ("second", True)]
    instead = [body.instead_of for body in bodies(reply, ModelStarted)]
    assert instead[1:3] == [None, "scripted"]
    assert outcome.timing and outcome.timing.seconds <= 2.0


@pytest.mark.req("SO-4")
async def test_no_fallback_over_a_budget_after_a_refusal_or_after_a_foreign_principal():
    over = await run_turn(
        "one", ALICE, backed(answering("x" * 900), answering("never"), tokens_out=10)
    )
    refused = await run_turn("one", ALICE, backed(declining("I'd rather."), answering("never")))

    def peek() -> tuple[str, ToolResult]:
        """Looks."""
        return "unavailable", ToolResult(text="unavailable", fault="principal_mismatch")

    look = StructuredTool.from_function(peek, response_format="content_and_artifact")
    first = ScriptedModel(Line(calls=[("peek", {})]), Line(error=ConnectionError("503")))
    foreign = await run_turn("one", ALICE, backed(first, answering("never"), {"peek": look}))
    reasons = [failure.reason for r in (over, refused, foreign) for failure in failures(r)]
    assert reasons == ["budget", "refusal", "exception"], "a refusal, though with words"
    assert {model for r in (over, refused, foreign) for model, _ in spoke(r)} == {"scripted"}


@tool
def refund() -> str:
    """Refunds."""
    return "done"


def granted(grant: ToolGrant) -> AgentCard:
    """The explainer with a tool that is new."""
    grants: dict[str, Any] = {"tools": ("refund",), "tool_grants": {"refund": grant}}
    return AgentCard(id="explainer", description="d", model="offline", eval=EVALUATED, **grants)


@pytest.mark.req("SO-11", "SO-19")
@pytest.mark.parametrize(("since", "logged"), [("2026-10-03", True), ("2026-10-02", False)])
async def test_each_call_of_a_new_tool_says_so_in_the_trace_for_thirty_days(
    since: str, logged: bool
):
    card = granted(ToolGrant(since=datetime.date.fromisoformat(since), flag=None))
    model = ScriptedModel(Line(calls=[("refund", {})] * 2), Line("ok"))
    kit = small_kit([asking({}), stitched], {"explainer": model}, {"refund": refund}, cards=[card])
    reply = await run_turn("one", ALICE, kit)
    calls = bodies(kit.store.events(reply.turn_id, OPERATOR), ToolStarted)
    assert [(call.agent, call.tool, call.watched_since) for call in calls] == [
        ("explainer", "refund", since if logged else None)
    ] * 2


@pytest.mark.req("SO-1")
def test_the_model_that_models_yaml_names_takes_over_where_the_card_names_none():
    models = [
        ModelSpec(key="small", provider="offline", fallback="spare"),
        ModelSpec(key="spare", provider="offline"),
    ]

    def fallback_of(model: str, **fields: Any) -> str | None:
        card = AgentCard(id="a", description="a", model=model, **fields)
        agent = bind(Deck.of([card], models=models, required_blocks=())).agents["a"]
        fallback = cast("LLMAgent", agent).fallback
        return fallback.spec.key if fallback else None

    assert fallback_of("small") == "spare" and fallback_of("spare") is None
    assert (
        fallback_of("small", fallback_model="offline", policy=Policy(model_time_ms=9)) == "offline"
    )


@pytest.mark.req("SO-11")
@pytest.mark.parametrize(
    ("flags", "bound"), [({}, False), ({"refunds": False}, False), ({"refunds": True}, True)]
)
def test_a_new_tool_is_bound_only_where_its_flag_is_on(flags: dict[str, bool], bound: bool):
    card = granted(ToolGrant(since=datetime.date(2026, 10, 20), flag="refunds"))
    deck = Deck.of([card], required_blocks=(), flags=flags)
    agent = bind(deck, answering("x"), {"refund": refund}).agents["explainer"]
    assert isinstance(agent, LLMAgent) and ("refund" in agent.tools) == bound
