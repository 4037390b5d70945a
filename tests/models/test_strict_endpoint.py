"""After whatever a guard did, an endpoint that wants each call answered once, and not by nothing,
takes the next request."""

from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.tools import tool

from kit.compose.parts import Guards
from kit.core.bodies.guard import GuardActed
from kit.core.card import AgentCard
from kit.core.model import ModelSpec
from kit.core.outcome import SET_ASIDE, AgentCall, Answer, Outcome
from kit.core.record import Message
from kit.models.openai import chat_model
from kit.runtime.context import RunContext
from kit.runtime.turn import Reply, run_turn
from tests.kits import ALICE, SmallKit, answering, bodies, small_kit
from tests.loopback_openai import JSON, Call, Loopback, Say, loopback

MIXED = "my receipt didn't scan and find me coffee deals"
ASKED = "Sorry about that. Was it bought in the in-app shop?"
AGENTS = ("shop", "support", "rewards", "play")
APIS = pytest.mark.parametrize("api", ["chat", "responses"])


@pytest.fixture
def server() -> Iterator[Loopback]:
    with loopback() as server:
        server.strict = True
        yield server


def ask(agent: str, query: str, call_id: str, intents: int = 2, **more: Any) -> Call:
    return Call(f"ask_{agent}", {"query": query, "intent_count": intents, **more}, call_id)


def kit_at(
    server: Loopback,
    api: str,
    cards: tuple[AgentCard, ...] = (),
    tools: Any = None,
    **settings: Any,
) -> SmallKit:
    """Four agents that say their name, and a lead, or whoever has a card here, at the endpoint."""
    model = chat_model(ModelSpec(key="stub", provider="openai", api=api), base_url=server.url)  # type: ignore[arg-type]
    models: dict[str, Any] = {agent: answering(f"From {agent}.") for agent in AGENTS}
    models |= {card.id: model for card in cards}
    settings = {
        "guards": Guards(),
        "default_sub_agent": "shop",
        "support_agent": "support",
        **settings,
    }
    return small_kit(model, models, tools, cards=cards, **settings)


async def turn(kit: SmallKit, text: str, said: str = "", in_play: tuple[str, ...] = ()) -> Reply:
    history = [Message(turn_id="t0", role="assistant", text=said)] if said else []
    return await run_turn(text, ALICE, kit, history=history, in_play=in_play)


def sent(request: JSON) -> tuple[list[str], list[str]]:
    """Names of the calls in a request, and the results."""
    items: list[JSON] = request.get("messages") or request["input"]
    names = [item["name"] for item in items if item.get("type") == "function_call"]
    names += [call["function"]["name"] for item in items for call in item.get("tool_calls") or ()]
    results = [
        i for i in items if i.get("role") == "tool" or i.get("type") == "function_call_output"
    ]
    return names, [str(item.get("content") or item.get("output")) for item in results]


SUPPORT, SHOP = (
    ask("support", "my receipt didn't scan", "c1"),
    ask("shop", "find me coffee deals", "c2"),
)
GUARDED: dict[str, tuple[str, list[list[Call]], list[str]]] = {
    "failsafe": (
        MIXED,
        [[SUPPORT], [ask("shop", "find me coffee deals", "c1")]],
        ["support", "shop"],
    ),
    "duplicate": (
        MIXED,
        [[SUPPORT, SHOP, ask("shop", "find me  COFFEE deals", "c3")]],
        ["support", "shop", "shop"],
    ),
    "overlap": (MIXED, [[SUPPORT, SHOP, ask("play", "bonus", "c3")]], ["support", "shop", "play"]),
    "verbatim": (MIXED, [[ask("shop", "coffee offers", "c1", 1)]], ["shop"]),
    "echo": ("ok", [[ask("shop", "ok", "c1"), ask("play", "ok", "c2")]], ["support", "play"]),
    "fastpath": ("what is the capital of France?", [[]], ["shop"]),
}
"""Guard -> the message, the calls of each model reply before the composing one, and the calls sent then."""


@pytest.mark.realtime
@pytest.mark.req("PC2-FR-3", "SAT-15")
@pytest.mark.parametrize(
    ("guard", "api"),
    [*((guard, "chat") for guard in GUARDED), ("failsafe", "responses"), ("echo", "responses")],
)
async def test_the_request_after_a_guard_acted_is_taken(server: Loopback, guard: str, api: str):
    text, decided, names = GUARDED[guard]
    server.plays(
        *(Say(["Let me look."], calls) for calls in decided),
        Say(["Here is what I found: all is well."]),
    )
    before: dict[str, Any] = {"said": ASKED, "in_play": ("support",)} if guard == "echo" else {}
    reply = await turn(kit_at(server, api), text, **before)
    assert guard in {body.guard for body in bodies(reply, GuardActed)}
    assert (reply.status, len(server.requests)) == ("ok", len(decided) + 1), reply.events[-1]
    offered = [tool.get("function", tool)["name"] for tool in server.requests[0]["tools"]]
    assert offered == [f"ask_{agent}" for agent in AGENTS]
    called, results = sent(server.requests[-1])
    assert sorted(called) == sorted(f"ask_{name}" for name in names)
    assert results.count(SET_ASIDE) == len(names) - len(reply.outcomes)
    own = [
        item.get("id")
        for item in server.requests[-1].get("input", ())
        if item.get("role") == "assistant"
    ]
    assert api == "chat" or own[-1] == "msg_1", "the provider's own item goes back to it"


@pytest.mark.realtime
@pytest.mark.req("PC2-FR-3", "PC2-FR-7")
@APIS
async def test_the_request_after_repeated_ids_over_cap_calls_and_a_second_round_is_taken(
    server: Loopback, api: str
):
    first = [
        SUPPORT,
        ask("shop", "find me coffee deals", "c1"),
        ask("play", "my receipt and coffee", "c1"),
    ]
    again = [ask("rewards", "coffee deals", "c1")]
    server.plays(
        Say(["Let me look."], first),
        Say([], again),
        *[Say(["All that I found. I left out play and rewards."])] * 2,
    )
    reply = await turn(kit_at(server, api, cap=2), MIXED)
    assert reply.status == "ok" and not server.script[1:]
    assert sorted(sent(server.requests[-1])[0]) == [
        "ask_play",
        "ask_rewards",
        "ask_shop",
        "ask_support",
    ]
    assert reply.routing.dropped == ("play", "rewards")


@pytest.mark.realtime
@APIS
async def test_answers_and_tool_results_without_words_are_sent_as_such(server: Loopback, api: str):
    class Silent:
        card, time_budget = AgentCard(id="shop", description="d", model="offline"), None

        async def run(self, call: AgentCall, ctx: RunContext) -> Outcome:
            return Answer(call_id=call.call_id, agent="shop", text="")

    @tool
    async def nothing() -> str:
        """Finds nothing."""
        return ""

    card = AgentCard(
        id="support", description="Answers support.", model="offline", tools=("nothing",)
    )
    kit = kit_at(server, api, (card,), {"nothing": nothing})
    kit.team = kit.team.with_agents({"shop": Silent()})
    fine = Say(["Sharp photos scan best; nothing turned up for coffee."])
    server.plays(
        Say([], [SUPPORT, SHOP]),
        Say([], [Call("nothing", {}, "n1"), Call("nothing", {}, "n1")]),
        fine,
        fine,
    )
    reply = await turn(kit, MIXED)
    assert reply.status == "ok" and {o.kind for o in reply.outcomes} == {"answer"}, reply.outcomes
    assert (
        sent(server.requests[2])[1] == ["(no text)"] * 2
        and "(no text)" in sent(server.requests[3])[1]
    )
