"""Listens to every model call of a team, and knows for whom each was made."""

from collections.abc import AsyncIterator
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any

from langchain_core.runnables import Runnable, RunnableConfig

from kit.models.asynchronous import AsyncModel
from kit.runtime.agents.llm_agent import LLMAgent
from kit.runtime.team import Team

WHOSE: ContextVar[str] = ContextVar("whose", default="")
"""Set around the start of a turn; its task and all its children inherit it."""


@dataclass
class Heard:
    """What models were shown, by whose turn it was."""

    said: dict[str, list[str]] = field(default_factory=dict[str, list[str]])

    def team(self, team: Team) -> Team:
        """The same team, listened to."""
        agents = {key: agent for key, agent in team.agents.items() if isinstance(agent, LLMAgent)}
        models = {
            key: replace(agent.model, runnable=_Ear(agent.model.runnable, self))
            for key, agent in agents.items()
        }
        return team.with_agents(
            {key: replace(agent, model=models[key]) for key, agent in agents.items()}
        )


class _Ear(AsyncModel):
    def __init__(self, inner: Runnable[Any, Any], heard: Heard):
        self._inner, self._heard = inner, heard

    def astream(
        self, input: Any, config: RunnableConfig | None = None, **kwargs: Any
    ) -> AsyncIterator[Any]:
        self._heard.said.setdefault(WHOSE.get(), []).extend(
            message.model_dump_json() for message in input
        )
        return self._inner.astream(input, config, **kwargs)
