"""The leak meter: plants a mark in each agent's turns, then looks for it in everything each model was shown."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from langchain_core.messages import BaseMessage
from langchain_core.runnables import Runnable, RunnableLambda

from kit.core.context import Session
from kit.core.record import Message, TurnRecord
from kit.runtime.agents.llm_agent import LLMAgent
from kit.runtime.bound_model import BoundModel
from kit.runtime.context import Agent
from kit.runtime.team import Team
from kit.stores.turn_store import TurnStore

_PRIOR_CONTEXT = re.compile(r"^From earlier in the conversation: .*$", re.M)


@dataclass(frozen=True)
class LeakMatrix:
    """How often each reader's model was shown each agent's mark; a row is a reader, a column an owner."""

    agents: tuple[str, ...]
    raw: Mapping[tuple[str, str], int]
    """(reader, owner) -> messages that held the owner's mark, the prior_context line aside."""
    on_purpose: Mapping[tuple[str, str], int]
    """The same in prior_context alone, which carries what the next agent needs."""

    @property
    def leaks(self) -> int:
        """Messages off the diagonal, raw: must be zero."""
        return sum(count for (reader, owner), count in self.raw.items() if reader != owner)

    def rows(self) -> list[list[int]]:
        """Returns the raw counts: one row a reader, one column an owner."""
        return [
            [self.raw.get((reader, owner), 0) for owner in self.agents] for reader in self.agents
        ]

    def __str__(self) -> str:
        width = max(map(len, self.agents), default=0) + 2
        head = "saw the mark of".ljust(width) + "".join(owner.rjust(width) for owner in self.agents)
        rows = [
            reader.ljust(max(width, 15))
            + "".join(str(self.raw.get((reader, owner), 0)).rjust(width) for owner in self.agents)
            for reader in self.agents
        ]
        return "\n".join([head, *rows, f"off the diagonal: {self.leaks}"])


class LeakMeter:
    """Listens at the models of a team. `plant()` before the turns, `team` in the kit that runs
    them, `matrix()` after."""

    def __init__(self, team: Team):
        self.agents = tuple(card.id for card in team.orchestrator.sub_cards.values())
        self.threads: dict[str, list[Sequence[BaseMessage]]] = {agent: [] for agent in self.agents}
        self.team = team.with_agents(
            {name: self._with_listener(name, team.agents[name]) for name in self.agents}
        )

    def mark(self, agent: str) -> str:
        """Returns a word that stands nowhere else."""
        return f"zq{agent.replace('_', '')}{len(agent)}mark"

    def plant(self, store: TurnStore, session: Session, turns: int = 1) -> None:
        """Writes finished turns in which each agent's own part, question and answer alike, holds its mark."""
        store.open_session(session)
        for number in range(turns):
            for agent in self.agents:
                turn = TurnRecord(
                    id=f"planted-{session.id}-{agent}-{number}",
                    session_id=session.id,
                    tenant_id=session.principal.tenant_id,
                    user_id=session.principal.user_id,
                    message="planted",
                    pattern="planted",
                    started_at=float(number),
                    status="ok",
                    invoked=(agent,),
                )
                store.begin_turn(turn)
                store.end_turn(turn, [], self._lines(turn.id, agent))

    def matrix(self) -> LeakMatrix:
        """Counts what was shown since this meter was made."""
        raw: dict[tuple[str, str], int] = {}
        on_purpose: dict[tuple[str, str], int] = {}
        for reader, threads in self.threads.items():
            for owner in self.agents:
                texts = [str(message.content) for thread in threads for message in thread]
                mark = self.mark(owner)
                raw[reader, owner] = sum(mark in _PRIOR_CONTEXT.sub("", text) for text in texts)
                on_purpose[reader, owner] = sum(
                    mark in line for text in texts for line in _PRIOR_CONTEXT.findall(text)
                )
        return LeakMatrix(self.agents, raw, on_purpose)

    def _lines(self, turn_id: str, agent: str) -> list[Message]:
        mark = self.mark(agent)
        lines = [("user", f"a question with {mark}"), ("assistant", f"an answer with {mark}")]
        readers = ("", agent)
        return [
            Message.model_validate({"turn_id": turn_id, "role": r, "text": t, "agent": a})
            for a in readers
            for r, t in lines
        ]

    def _with_listener(self, name: str, agent: Agent) -> Agent:
        if not isinstance(agent, LLMAgent):
            return agent

        def listen(messages: Any) -> Any:
            self.threads[name].append(list(messages))
            return messages

        runnable: Runnable[Any, Any] = RunnableLambda(listen) | agent.model.runnable
        return replace(agent, model=BoundModel(agent.model.spec, runnable))


def with_full_history(team: Team) -> Team:
    """Returns the team under `history: whole`: the baseline that a leak matrix is held against."""
    settings = team.deck.settings.model_copy(update={"history": "whole"})
    return replace(team, deck=replace(team.deck, settings=settings))
