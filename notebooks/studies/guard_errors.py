"""Both errors between decision and execution: a call that the model invented runs, a call that was
needed is dropped."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from langchain_core.messages import BaseMessage, ToolMessage

from kit.bench.case import Ask, read_cases
from kit.bench.routing import Stub
from kit.compose.parts import DeckSettings
from kit.core.bodies.call import AgentStarted
from kit.core.language.words import content_words, words
from kit.models.scripted import Line, ScriptedModel
from kit.runtime.team import bind
from kit.runtime.turn import run_turn
from studies.study_deck import ORCHESTRATOR, kept_by, plain_cards, study_deck, study_session

WORDINGS = (
    "as the user said it",
    "in one word of it",
    "one call in other words",
    "all in other words",
)
"""How the model words the calls that are needed."""
INVENTED, OTHERWISE = "quarterly zodiac forecast", "whatever belongs here"
"""Words of an invented call and of a call in other words: no message of the cases holds one of them."""
SETTINGS: Mapping[str, object] = {
    "guards on": True,
    "without overlap": {"overlap": False},
    "pure loop": False,
}


class EmittedCall(NamedTuple):
    """One call that the model made under one setting; a list of them is a tidy frame."""

    setting: str
    wording: str
    case: str
    needed: bool
    """It is for a part of the message; otherwise it was invented."""
    ran: bool


def several_parts(path: Path, most: int) -> list[Ask]:
    """Returns the messages of a case file that are for several sub-agents, fewer than `most`."""
    return [ask for case in read_cases(path) for ask in case.turns if 1 < len(ask.queries) < most]


async def play_errors(
    asks: Sequence[Ask], agents: Sequence[str], settings: Mapping[str, object] = SETTINGS
) -> list[EmittedCall]:
    """Plays every message under every setting and wording: the calls it needs, and one to a
    sub-agent it does not speak of."""
    rows: list[EmittedCall] = []
    now: dict[str, str] = {}

    def say(messages: list[BaseMessage]) -> Line:
        if isinstance(messages[-1], ToolMessage):
            return Line("Here is what I found.")
        made = [
            (f"ask_{agent}", {"query": query, "intent_count": len(now)})
            for agent, query in now.items()
        ]
        return Line("Let me look.", calls=made)

    for setting, guards in settings.items():
        values = DeckSettings.model_validate(
            {"orchestrator": ORCHESTRATOR, "required_blocks": (), "guards": guards}
        )
        deck = study_deck(plain_cards(agents), cap=len(agents), guards=values.guards)
        team = bind(deck, {"*": "offline", ORCHESTRATOR: ScriptedModel(say)}, {})
        kit = replace(
            kept_by(None, team),
            team=team.with_agents({name: Stub(team.agents[name].card) for name in agents}),
        )
        for wording in WORDINGS:
            for number, ask in enumerate(asks):
                now = calls_of(ask, wording, agents)
                reply = await run_turn(
                    ask.user, study_session(f"{setting}-{wording}-{number}"), kit
                )
                ran = {
                    event.body.agent
                    for event in reply.events
                    if isinstance(event.body, AgentStarted)
                }
                rows += [
                    EmittedCall(setting, wording, f"{number}", agent in ask.queries, agent in ran)
                    for agent in now
                ]
        kit.store.close()
    return rows


def calls_of(ask: Ask, wording: str, agents: Sequence[str]) -> dict[str, str]:
    """Returns the calls a message needs, in this wording, and one more to the first sub-agent it does not need."""
    queries = dict(ask.queries)
    for place, (agent, query) in enumerate(ask.queries.items()):
        if wording == WORDINGS[1]:
            queries[agent] = max(filter(content_words, words(query)), key=len, default=query)
        elif wording == WORDINGS[3] or (wording == WORDINGS[2] and not place):
            queries[agent] = OTHERWISE
    return {**queries, next(agent for agent in agents if agent not in queries): INVENTED}
