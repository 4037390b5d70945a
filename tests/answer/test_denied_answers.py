"""An answer in hand is not denied by the text beside it, however short it is, and components are an answer."""

import pytest
from langchain_core.tools import StructuredTool

from kit.core.card import AgentCard
from kit.core.outcome import Answer, ComponentPayload
from kit.models.scripted import Line, ScriptedModel
from kit.runtime.turn import Reply, run_turn
from kit.tools.tool import ToolResult
from tests.kits import ALICE, answering, asks, failing, small_kit

SHORT = "No, that offer is not valid at Larder."
OFFERS = ({"id": "of-1", "title": "Coffee"}, {"id": "of-2", "title": "Beans"})


async def composed(answer: str, text: str) -> Reply:
    """What a user reads when an agent answers and the orchestrator composes `text`, twice."""
    kit = small_kit(
        [asks("shop", query="is it valid at Larder?"), text, text], {"shop": answering(answer)}
    )
    return await run_turn("is that offer valid at Larder?", ALICE, kit)


@pytest.mark.req("PC1-R-7")
@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (SHORT, "I can't help with that offer."),
        (SHORT, "I wasn't able to get an answer about that right now."),
        ("Yes.", "I'm sorry, I can't help with that."),
        ("Sí, hasta el domingo.", "Lo siento, no puedo ayudarte con eso."),
        ("Sí, hasta el domingo.", "No sabría decirte."),
    ],
)
async def test_a_short_answer_is_not_replaced_by_a_denial(answer: str, text: str):
    assert (await composed(answer, text)).text == answer


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (SHORT, "It is not valid there."),
        ("No offers were found.", "I couldn't find any offers for that."),
        ("I have no information on that.", "I'm sorry, I can't help with that."),
        ("Yes.", "It is, until Sunday."),
        ("No lo cobra.", "No te lo cobra."),
        ("Sí, hasta el domingo.", "Lo sé: hasta el domingo."),
    ],
)
async def test_a_short_answer_told_in_other_words_stands_as_it_was_composed(answer: str, text: str):
    assert (await composed(answer, text)).text == text


async def test_owning_up_to_one_part_does_not_deny_the_short_answer_of_another():
    text = "I wasn't able to get an answer about rewards right now."
    models = {"shop": answering(SHORT), "rewards": failing(OSError("x"))}
    kit = small_kit([asks("shop", "rewards"), text, text], models)
    assert (await run_turn("two things", ALICE, kit)).text == f"{SHORT}\n\n{text}"


def look() -> tuple[str, ToolResult]:
    """Looks for offers."""
    shown = tuple(ComponentPayload(type="offer", payload=offer) for offer in OFFERS)
    return "Two offers.", ToolResult(text="Two offers.", components=shown)


@pytest.mark.req("PC1-FR-3")
@pytest.mark.parametrize("text", ["", "I wasn't able to get an answer about shop right now."])
async def test_an_agent_that_shows_components_and_says_nothing_has_answered(text: str):
    card = AgentCard(id="shop", description="Finds offers.", model="offline", tools=("look",))
    tools = {"look": StructuredTool.from_function(look, response_format="content_and_artifact")}
    shop = ScriptedModel(Line(calls=[("look", {})]), Line(""))
    kit = small_kit([asks("shop"), text, text], {"shop": shop}, tools, cards=[card])
    reply = await run_turn("find coffee deals", ALICE, kit)
    assert isinstance(reply.outcomes[0], Answer) and len(reply.outcomes[0].components) == 2
    assert reply.text == "Here is what I found."


async def test_of_very_many_parts_left_out_the_first_are_named_and_the_others_counted():
    agents = [f"desk{number}" for number in range(40)]
    models = {agent: answering(f"{agent} is open.") for agent in agents}
    kit = small_kit([asks(*agents), "", ""], models, cap=4)
    reply = await run_turn("open?", ALICE, kit)
    named = ", ".join(f"desk{number}" for number in range(4, 16))
    assert f"I left out {named} and 24 more for now" in reply.text
    assert "desk16" not in reply.text
