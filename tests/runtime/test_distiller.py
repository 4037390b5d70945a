"""What crosses a closed hand-off is distilled from the conversation: by rule where one does, else
by the helper model."""

from typing import Any

import pytest
from langchain_core.tools import StructuredTool

from kit.compose.deck import Deck
from kit.core.bodies.call import AgentStarted, ModelEnded
from kit.core.bodies.memory import Distillation
from kit.core.card import AgentCard, Handoff, HandoffField
from kit.core.errors import DeckError
from kit.core.outcome import Answer, ComponentPayload
from kit.core.record import ShownComponent
from kit.models.scripted import Line, ScriptedModel
from kit.runtime.handoff import ask_tool
from kit.runtime.job import meant
from kit.runtime.team import bind
from kit.runtime.turn import Reply, run_turn
from kit.stores.sqlite import SqliteStore
from kit.tools.tool import ToolResult
from tests.kits import ALICE, SmallKit, answering, asks, bodies, small_deck, stitched

FIELDS = {
    "title_ids": HandoffField(type="array", max_items=2, source="shown"),
    "tastes": HandoffField(max_tokens=5, pii=True, source="conversation"),
    "count": HandoffField(type="integer", source="conversation"),
}
CLOSED = AgentCard(
    id="explainer",
    description="Explains.",
    model="offline",
    handoff=Handoff(closed=True, fields=FIELDS),
)
TITLES = ("Iron Wolf", "Glass Tide", "Hollow Crown")
SHOWN = [
    ShownComponent(turn_id="t", agent="shop", type="title", id=f"mg-{n}", title=t, position=n)
    for n, t in enumerate(TITLES, 1)
]
JOB = "submit_explainer_fields"


def look() -> tuple[str, Any]:
    """Looks."""
    parts = [
        ComponentPayload(type="title", payload={"id": item.id, "title": item.title})
        for item in SHOWN
    ]
    return "Three titles.", ToolResult(text="Three titles.", components=tuple(parts))


async def second_turn(
    helper: ScriptedModel, query: str, card: AgentCard = CLOSED, **args: Any
) -> tuple[list[Reply], ScriptedModel]:
    """Two turns, in the first of which titles are shown, and what the closed agent's model saw in the second."""
    seller = AgentCard(id="shop", description="d", model="offline", tools=("look",))
    explainer = answering("Because it is grim.")
    call = Line(
        "Let me look.", calls=[("ask_explainer", {"query": query, "intent_count": 1, **args})]
    )
    models = {
        "orchestrator": ScriptedModel(asks("shop"), stitched, call, stitched),
        "shop": ScriptedModel(Line(calls=[("look", {})]), "Three titles."),
        "explainer": explainer,
        "helper": helper,
    }
    tools = {"look": StructuredTool.from_function(look, response_format="content_and_artifact")}
    team = bind(small_deck(["shop", "explainer"], [seller, card]), models, tools)
    kit = SmallKit(team, SqliteStore(":memory:"))
    return [
        await run_turn("I love wolves", ALICE, kit),
        await run_turn(query, ALICE, kit),
    ], explainer


def one(reply: Reply, kind: type[Any]) -> Any:
    [body] = bodies(reply, kind)
    return body


@pytest.mark.req("SO-24", "SO-3")
async def test_declared_fields_are_filled_from_the_conversation_and_nothing_else_of_it_crosses():
    helper = ScriptedModel(Line(calls=[(JOB, {"tastes": "loves wolves", "secret": "never"})]))
    replies, explainer = await second_turn(
        helper, "why the first two?", tastes="the caller's own", title_ids=["mg-9"]
    )
    system = str(explainer.seen[0][0].content)
    assert system.endswith("Date: 2026-11-01\ntitle_ids: ['mg-1', 'mg-2']\ntastes: loves wolves")
    assert "I love wolves" in str(helper.seen[0]), "the helper reads the conversation"
    made = one(replies[1], Distillation)
    assert (made.agent, made.by_rule, made.by_model) == ("explainer", ("title_ids",), ("tastes",))
    assert made.before > made.after > 0
    begun = one(replies[1], AgentStarted)
    assert begun.fields == {"title_ids": ["mg-1", "mg-2"], "tastes": "[personal]"}
    ends = bodies(replies[1], ModelEnded)
    assert "loves wolves" not in "".join(map(str, ends)), (
        "a personal value is hidden from the moment it is written"
    )


@pytest.mark.req("SO-24")
async def test_a_card_whose_fields_a_rule_fills_asks_no_model():
    card = CLOSED.model_copy(
        update={"handoff": Handoff(closed=True, fields={"title_ids": FIELDS["title_ids"]})}
    )
    helper = ScriptedModel()
    replies, explainer = await second_turn(helper, "why Glass Tide?", card)
    assert one(replies[1], AgentStarted).fields == {"title_ids": ["mg-2"]} and helper.seen == []
    assert isinstance(replies[1].outcomes[0], Answer) and "Glass Tide" not in str(
        explainer.seen[0][0].content
    )


@pytest.mark.req("SO-24")
@pytest.mark.parametrize(
    ("line", "fields", "limited"),
    [
        (
            Line(calls=[(JOB, {"tastes": "w" * 21, "count": "two"})]),
            {"tastes": "[personal]"},
            ["tastes has 21", "count is no"],
        ),
        (Line("I cannot say."), {}, []),
        (Line(error=ConnectionError("503")), {}, []),
        (Line("late", delay=60.0), {}, []),
    ],
)
async def test_what_the_helper_gets_wrong_is_left_out_and_the_agent_runs_without(
    line: Line, fields: dict[str, Any], limited: list[str]
):
    replies, _ = await second_turn(ScriptedModel(line), "why?", tastes="own")
    begun = one(replies[1], AgentStarted)
    assert begun.fields == fields and isinstance(replies[1].outcomes[0], Answer)
    for note, words in zip(begun.limited, limited, strict=True):
        assert note.startswith(words)


@pytest.mark.req("SO-24")
def test_the_callers_model_is_not_asked_for_what_is_distilled():
    assert set(ask_tool(CLOSED)["function"]["parameters"]["properties"]) == {
        "query",
        "intent_count",
    }
    card = CLOSED.model_copy(
        update={"handoff": Handoff(fields={"n": HandoffField(type="number", source="shown")})}
    )
    with pytest.raises(DeckError, match="make it a string or an array"):
        Deck.of([card], required_blocks=())


@pytest.mark.req("SO-24")
@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("compare the first and the third one", [1, 3]),
        ("compare the first two", [1, 2]),
        ("the last 2 please", [2, 3]),
        ("is Hollow Crown darker than iron wolf?", [1, 3]),
        ("which of those is shortest", [1, 2, 3]),
        ("something funny", []),
    ],
)
def test_which_items_a_text_means(text: str, ids: list[int]):
    assert [item.position for item in meant(text, SHOWN, "those" in text)] == ids
