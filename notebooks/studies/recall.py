"""What of an earlier turn the agent a conversation has moved on to still knows, hop by hop, and at
what price.

The dialogues are simulated: a shopper settles on an offer with the first agent, then takes it to
four others in turn. The orchestrator and the sub-agents are scripted; the helper model that writes
prior_context is whichever is given.
"""

import asyncio
import random
from collections.abc import Mapping
from typing import Literal, NamedTuple, get_args

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import BaseMessage, HumanMessage, ToolMessage

from kit.bench.routing import RoutingKit
from kit.compose.prompts import tokens
from kit.models.offline import OfflineModel
from kit.models.scripted import Line, ScriptedModel
from kit.runtime.clock import run_virtual
from kit.runtime.team import Team, bind
from kit.runtime.turn import run_turn
from studies.history_leaks import with_full_history
from studies.study_deck import ORCHESTRATOR, plain_cards, study_deck, study_session

Way = Literal["own history", "prior_context", "everything"]
PATH = ("shop", "rewards", "support", "restaurants", "retailer_context")
_TITLES = (
    "Harbor Roast",
    "Tavola Penne",
    "Brightroast Beans",
    "Nonna Pizza",
    "Ember Granola",
    "Slicetown Calzone",
)
_STORES = ("Fernfield Foods", "Harvest Market", "Pantry & Vine", "Daily Larder", "Corner Basket")
_GOALS = ("for the wedding", "for a long journey", "as a present", "before the holidays")
_LATER = (
    ("is it enough for a voucher", "It would take {a} of your points; the voucher of {b} is next."),
    ("it did not count", "I opened ticket {c} with {b}; they answer by Friday."),
    ("where could we eat nearby", "{b} and {a} are close to the store."),
    ("until when is the store open", "{a} closes at nine; the branch on {b} Street at ten."),
)
"""What is asked at each hop, and an answer that names things of its own."""
_NAMES = (
    "Union Square",
    "Copper Lane",
    "Mill House",
    "Bluebird Cafe",
    "Station Gate",
    "Old Harbor",
    "Velvet Room",
    "North Pier",
)


class Recall(NamedTuple):
    """One fact of the first turn at one hop; a list of them is a tidy frame."""

    way: Way
    dialogue: int
    hop: int
    agent: str
    fact: str
    """What kind: offer, id, store or goal."""
    in_view: bool
    """It stands in what this agent's model was shown."""
    tokens: int
    """Of all that it was shown, estimated."""
    foreign: int
    """Lines of other agents' turns in it, as they were said."""


async def measure(
    dialogues: int = 20, seed: int = 7, helper: BaseChatModel | None = None
) -> list[Recall]:
    """Plays the same dialogues in three ways; `helper` defaults to the offline stand-in.

    own history: no prior_context is written. everything: each sub-agent is shown the whole
    conversation (history_leaks.py).
    """
    return await asyncio.to_thread(
        run_virtual, _measure(dialogues, seed, helper or OfflineModel().paced(0))
    )


async def _measure(dialogues: int, seed: int, helper: BaseChatModel) -> list[Recall]:
    rows: list[Recall] = []
    for way in get_args(Way):
        for number in range(dialogues):
            rows += await _dialogue(way, number, random.Random(f"{seed}/{number}"), helper)
    return rows


async def _dialogue(
    way: Way, number: int, rng: random.Random, helper: BaseChatModel
) -> list[Recall]:
    facts = {
        "offer": rng.choice(_TITLES),
        "id": f"of-{rng.randrange(1000, 9999)}",
        "store": rng.choice(_STORES),
        "goal": rng.choice(_GOALS),
    }
    lines = _lines(facts, rng)
    models = {agent: _saying(reply) for agent, (_, reply) in zip(PATH, lines, strict=True)}
    kit = RoutingKit(_team(way, models, helper))
    rows: list[Recall] = []
    for hop, (agent, (question, _)) in enumerate(zip(PATH, lines, strict=True)):
        await run_turn(f"{agent}: {question}", study_session(f"recall-{number}"), kit)
        thread = models[agent].seen[-1]
        prompt = "\n".join(str(message.content) for message in thread)
        size, foreign = (
            tokens(prompt),
            len(thread) - 2,
        )  # asked once, it owns nothing between the system prompt and the request
        if hop:
            rows += [
                Recall(way, number, hop, agent, fact, words in prompt, size, foreign)
                for fact, words in facts.items()
            ]
    kit.store.close()
    return rows


def _lines(facts: Mapping[str, str], rng: random.Random) -> list[tuple[str, str]]:
    """Returns a question and an answer for each agent of the path."""
    question = f"I need {facts['offer']} {facts['goal']}, any deal?"
    answer = f"There is offer {facts['id']} on {facts['offer']} at {facts['store']}."
    lines = [(question, answer)]
    for question, answer in _LATER:
        a, b = rng.sample(_NAMES, 2)
        lines.append((question, answer.format(a=a, b=b, c=f"T-{rng.randrange(100, 999)}")))
    return lines


def _saying(reply: str) -> ScriptedModel:
    return ScriptedModel(lambda _: Line(reply))


def _lead(messages: list[BaseMessage]) -> Line:
    """Asks the agent a message is addressed to, and passes on what it says."""
    last = max(place for place, message in enumerate(messages) if isinstance(message, HumanMessage))
    results = [
        str(message.content) for message in messages[last:] if isinstance(message, ToolMessage)
    ]
    if results:
        return Line(" ".join(results))
    agent, _, question = str(messages[last].content).partition(": ")
    return Line("One moment.", calls=[(f"ask_{agent}", {"query": question, "intent_count": 1})])


def _team(way: Way, models: Mapping[str, ScriptedModel], helper: BaseChatModel) -> Team:
    team = bind(
        study_deck(plain_cards(models)),
        {**models, ORCHESTRATOR: ScriptedModel(_lead), "helper": helper},
        {},
    )
    if way != "prior_context":
        team = Team(team.deck, team.agents, team.root)
    return with_full_history(team) if way == "everything" else team
