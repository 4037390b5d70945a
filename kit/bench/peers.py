"""The kit in the slot of a peers' benchmark: the same turn, the same stub models, beside other
frameworks.

The benchmark lives outside this project. Its slot file needs one line: `from kit.bench.peers import
NAME, PACKAGES, Adapter`.
"""

from collections.abc import Mapping, Sequence
from importlib import import_module
from itertools import count
from typing import Any

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.tools import BaseTool, StructuredTool

from kit.bench.routing import BENCH_USER, RoutingKit, star_deck
from kit.compose.deck import Deck
from kit.core.card import AgentCard, Policy
from kit.core.context import Session
from kit.core.record import Message
from kit.core.value import builder
from kit.runtime.team import bind
from kit.runtime.turn import run_turn
from kit.stores.sqlite import SqliteStore

_new_message = builder(Message)
NAME = "subagent-kit"
PACKAGES = ["langchain-core", "pydantic"]
LOOKUP = {"type": "object", "properties": {"key": {"type": "string"}}, "required": ["key"]}


class Adapter:
    """One orchestrator over N sub-agents, as the benchmark's `Spec` says; every turn traced to
    SQLite: the `store` of the spec, else in memory."""

    def __init__(self, spec: Any):
        self._kit = RoutingKit(
            bind(*parts_of(spec)), SqliteStore(getattr(spec, "store", ":memory:"))
        )
        self._turns = count()

    async def turn(self, text: str, history: Sequence[tuple[str, str]] = ()) -> str:
        """The composed answer to one message after `history`, (role, text) pairs."""
        session = Session(id=f"s{next(self._turns)}", principal=BENCH_USER)
        messages: list[Message] = []
        for role, content in history:
            messages.append(
                _new_message(
                    turn_id="h", role="user" if role == "user" else "assistant", text=content
                )
            )
        return (await run_turn(text, session, self._kit, history=messages, in_play=())).text


def parts_of(spec: Any) -> tuple[Deck, Mapping[str, BaseChatModel], Mapping[str, BaseTool]]:
    """The deck of a spec, agent id -> its stub model, and the tools; `bind` and `open_kit` take all three."""
    # Modules of the benchmark, which lies outside of this project.
    workload = import_module("workload")
    stubs = import_module("adapters._lc_stub")
    ids: list[str] = list(spec.ids)
    if spec.sub_tool:
        tools = ("lookup",)
    else:
        tools = ()
    policy = Policy(time_budget_ms=int((spec.timeout or 30.0) * 1000))
    cards: list[AgentCard] = []
    for i in ids:
        cards.append(
            AgentCard(
                id=i,
                description=workload.DESC.format(id=i),
                model="offline",
                tools=tools,
                policy=policy,
            )
        )
    lookup = StructuredTool(
        name="lookup", description=workload.LOOKUP_DESC, args_schema=LOOKUP, coroutine=_lookup
    )
    deck = star_deck(cards, workload.ORCH_PROMPT, cap=max(8, len(ids)), known=["lookup"])
    models = {i: stubs.SubModel(spec=spec, sid=i) for i in ids} | {
        "orchestrator": stubs.OrchModel(spec=spec)
    }
    return deck, models, {"lookup": lookup}


async def _lookup(key: str) -> str:
    return f"V:{key}"
