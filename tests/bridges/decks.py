"""A deck on disk whose sub-agents run something else, and one turn of it."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from kit import open_kit
from kit.compose.deck import load_deck
from kit.runtime.handle import Reply
from kit.wire import Kit
from tests.kits import OFFLINE, asks, leading


def write_deck(
    folder: Path, runs: Mapping[str, str], code: str = "", extra: Mapping[str, str] = {}
) -> Path:
    """Writes a deck of a lead over one agent for each of `runs`, agent -> what its card runs;
    `code` is agents.py beside it, `extra` further lines of a card."""
    deck = folder / "deck"
    deck.mkdir(parents=True, exist_ok=True)
    (deck / "deck.yaml").write_text("orchestrator: lead\nrequired_blocks: []\n")
    (deck / "agents.py").write_text(code)
    names = ", ".join(runs)
    (deck / "lead.yaml").write_text(
        f"id: lead\ndescription: Leads.\nmodel: offline\nsub_agents: [{names}]\n"
    )
    for agent, run in runs.items():
        card = f"id: {agent}\ndescription: Answers questions about {agent}.\nrun: {run}\n"
        (deck / f"{agent}.yaml").write_text(card + extra.get(agent, ""))
    return deck


@asynccontextmanager
async def kit_over(deck: Path, *agents: str, **opened: Any) -> AsyncGenerator[Kit]:
    """A kit whose lead asks these agents in every turn."""
    models: Any = {"lead": leading(asks(*agents)), "*": "offline"}
    async with open_kit(OFFLINE, deck=load_deck(deck), models=models, **opened) as kit:
        yield kit


async def ask(deck: Path, *agents: str, **turn: Any) -> Reply:
    """One turn in which these agents are asked."""
    async with kit_over(deck, *agents, faults="faults" in turn) as kit:
        return await kit.ask("Please help me.", kit.session("s"), **turn)
