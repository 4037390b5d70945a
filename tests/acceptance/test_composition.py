"""The composition design's own tests that no other file has (PC1 9.1, 9.2, 9.4): from card to
agent, and whole dialogues."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from langchain_core.messages import BaseMessage, ToolMessage
from langchain_core.tools import BaseTool

from kit.compose.deck import load_deck
from kit.core.bodies.call import AgentStarted
from kit.core.errors import DeckError
from kit.core.outcome import Answer
from kit.models.scripted import Line, ScriptedModel
from kit.runtime.turn import Reply
from kit.settings import HOME
from kit.wire import open_kit
from tests.kits import EMBEDDED, answering, asks, stitched
from tests.worlds import toolbox

CARDS = HOME / "cards"
QUESTIONS: Mapping[str, tuple[str, ...]] = {
    "shop": ("find coffee deals", "compare laundry detergents for me"),
    "support": ("my receipt didn't scan", "I can't log in any more"),
    "rewards": ("how many points do I have?", "can I afford a ten dollar gift card?"),
    "ereceipts": ("show me my latest e-receipts", "what was the total on my last grocery receipt?"),
    "play": ("which games can I play for points?", "what level am I on?"),
    "offer_details": ("which offers end soon?", "what are the terms of the Brightroast offer?"),
    "restaurants": ("find a pizza place nearby", "somewhere cheap to eat sushi?"),
    "retailer_context": ("when does Harvest Market open?", "is there a pharmacy near me?"),
}
MIXED: Mapping[str, tuple[str, ...]] = {
    "find coffee deals and tell me how many points I have": ("shop", "rewards"),
    "my receipt didn't scan, and which games can I play for points?": ("support", "play"),
    "show me my latest e-receipts and find a pizza place nearby": ("ereceipts", "restaurants"),
    "which offers end soon, and when does Harvest Market open?": (
        "offer_details",
        "retailer_context",
    ),
    "my receipt didn't scan, show me my latest e-receipts, and find coffee deals": (
        "support",
        "ereceipts",
        "shop",
    ),
    "find a pizza place nearby, when does Harvest Market open, and which games can I play for points?": (
        "restaurants",
        "retailer_context",
        "play",
    ),
}


def started(reply: Reply) -> dict[str, AgentStarted]:
    return {
        event.body.agent: event.body
        for event in reply.events
        if isinstance(event.body, AgentStarted)
    }


def lead_asking(*names: str, own: tuple[str, ...] = ()) -> ScriptedModel:
    """An orchestrator that hands the whole message to each of these at once, calls its own tools,
    and joins what comes back."""

    def say(messages: list[BaseMessage]) -> Line:
        if isinstance(messages[-1], ToolMessage):
            return stitched(messages)
        asked = asks(*names, query=str(messages[-1].content))
        return Line(asked.text, calls=[*asked.calls, *((name, {}) for name in own)])

    return ScriptedModel(say)


# From card to agent


def block_texts() -> dict[str, str]:
    """Every block of the shipped registry, read without the kit."""
    parts = [path.read_text().split("---\n", 2) for path in (CARDS / "blocks").rglob("*.md")]
    return {yaml.safe_load(front)["id"]: text.strip() for _, front, text in parts}


@pytest.mark.req("PC1-S9.1-2", "PC1-S9.1-4", "PC1-S9.1-5")
async def test_what_each_shipped_agents_model_reads_is_platform_blocks_own_blocks_and_last_the_request():
    deck, texts = load_deck(CARDS / "consumer"), block_texts()
    required = yaml.safe_load((CARDS / "consumer" / "deck.yaml").read_text())["required_blocks"]
    models = {card.id: answering("Done.") for card in deck.active()}
    subs = deck.cards["orchestrator"].sub_agents
    models["orchestrator"] = lead_asking(*subs)
    async with open_kit(EMBEDDED, deck=deck, models=models) as kit:
        await kit.ask("tell me everything", kit.session("s"), cap=len(subs))
    assert required == ["persona-fetch-assistant", "format-conversational", "safety-base"]
    assert not deck.on("strict_gating")
    routing = "Call at most 4 tools in one turn; when the message has more parts, choose the 4 most relevant."
    request = "Date: 2026-11-01\nUser: u-001\nLocale: en-US\nLocation: Rivermont"
    for name, model in models.items():
        card = yaml.safe_load((CARDS / "consumer" / f"{name}.yaml").read_text())
        named = (*required, *card["prompt_blocks"])
        blocks = [texts[block] for block in named if deck.on(deck.blocks[block].flag)]
        if name == "orchestrator":
            blocks.append(f"{routing}\nWhen no tool fits: ask_shop")
        limit = (
            f"\nIn this turn the limit is another: call at most {len(subs)} tools."
            if name == "orchestrator"
            else ""
        )
        assert (
            len(blocks) >= 6
            and str(model.seen[0][0].content) == "\n\n".join([*blocks, request]) + limit
        ), name


# What can be discovered


@pytest.mark.req("PC1-S9.4-2")
def test_a_tool_reference_is_the_id_under_which_the_registry_makes_a_tool_of_that_name(
    tmp_path: Path,
):
    async def nobody(*_: Any) -> Any:
        raise AssertionError("nothing is called at bind")

    deck, box = load_deck(CARDS / "consumer"), toolbox(nobody, nobody)  # type: ignore[arg-type]
    for card in deck.cards.values():
        for reference in card.tools:
            entry = box[reference]
            made = (
                entry if isinstance(entry, BaseTool) else entry(deck.tool_config(card, reference))
            )
            assert isinstance(made, BaseTool) and made.name == reference and made.description
    wrong = "id: a\ndescription: A.\nmodel: offline\ntools:\n  - {name: search_offers}\n"
    for name, text in {"deck.yaml": "orchestrator: a\n", "a.yaml": wrong}.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(DeckError, match=r"a\.yaml:5: .*tools.*string"):
        load_deck(tmp_path)


# Routing


@pytest.mark.req("PC1-S9.2-1")
async def test_single_and_mixed_questions_of_every_vertical_go_where_they_belong():
    verticals = set(load_deck(CARDS / "consumer").cards["orchestrator"].sub_agents)
    assert set(QUESTIONS) == verticals == {name for names in MIXED.values() for name in names}
    expected = {
        question: (name,) for name, questions in QUESTIONS.items() for question in questions
    } | dict(MIXED)
    async with open_kit(EMBEDDED) as kit:
        for question, names in expected.items():
            reply = await kit.ask(question, kit.session(question))
            assert set(reply.routing.invoked) == set(names), question
            asked = {name: body.query for name, body in started(reply).items()}
            assert all(query.strip(" ?.,") in question for query in asked.values()), (
                "each in the user's own words"
            )
            assert len(set(asked.values())) == len(names), "and each its own part"
            assert all(isinstance(outcome, Answer) for outcome in reply.outcomes), question


OFFER, STORE = "Ember Hill Ground Coffee", "Fernfield Foods"


def told_of(name: str, tool_id: str, argument: str = "query") -> ScriptedModel:
    """A sub-agent's model that knows what "that" means only if its prompt names it; it says what its tool says."""

    def say(messages: list[BaseMessage]) -> Line:
        if isinstance(messages[-1], ToolMessage):
            return Line(str(messages[-1].content))
        known = name if name in str(messages[0].content) else "whatever it was"
        return Line(calls=[(tool_id, {argument: known})])

    return ScriptedModel(say)


@pytest.mark.req("PC1-S9.2-5", "PC2-S9.2-6")
async def test_over_a_dialogue_with_switches_routing_stays_right_and_what_others_named_is_understood():
    models = {
        "*": "offline",
        "offer_details": told_of(OFFER, "get_offer_terms"),
        "retailer_context": told_of(STORE, "get_retailer"),
    }
    dialogue = {
        "find coffee deals": ("shop",),
        "how many points do I have?": ("rewards",),
        "is there a limit on that coffee bonus?": ("offer_details",),
        "thanks!": (),
        "when does that store open?": ("retailer_context",),
        "find tea deals and tell me how many points I have": ("shop", "rewards"),
        "somewhere to eat pizza tonight?": ("restaurants",),
        "what about sushi?": ("restaurants",),
        "how did I earn my points?": ("rewards",),
    }
    replies: dict[str, Reply] = {}
    async with open_kit(EMBEDDED, models=models) as kit:
        session = kit.session("s")
        for message, names in dialogue.items():
            replies[message] = await kit.ask(message, session)
            assert replies[message].routing.invoked == names, message
    offers, points, terms, thanks, store, back, _, more, last = replies.values()
    found = [
        c.payload["title"] for o in offers.outcomes if isinstance(o, Answer) for c in o.components
    ]
    assert OFFER in found[0] and STORE in offers.text, "another agent named both"
    assert OFFER not in points.text, "and the turn in between did not"
    assert started(offers)["shop"].prior_context is None, "at first there is nothing to carry"
    assert OFFER in str(started(terms)["offer_details"].prior_context)
    assert re.search(rf"200 points on {OFFER} 12 oz .*Limit 5 per account", terms.text)
    assert STORE in str(started(store)["retailer_context"].prior_context), (
        "small talk in between is no switch"
    )
    assert store.text.startswith(f"{STORE} (") and " open " in store.text
    assert all(body.prior_context for body in started(back).values()), (
        "both come back from elsewhere"
    )
    assert started(more)["restaurants"].prior_context is None, "no switch, nothing carried"
    assert "Ember Pizza" in str(started(last)["rewards"].prior_context)
    assert thanks.status == "ok" and not thanks.outcomes
