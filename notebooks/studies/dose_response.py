"""Dose and response: how many parts of a turn fail, against what is left of its answer and whether
it admits the rest.

Sub-agents, their data and the lying composer are simulated; turns, faults and checks are the real
ones. Whoever judges here knows which faults were set and which values were planted, and nothing of
how the kit checks itself.
"""

import asyncio
import random
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import BaseMessage, ToolMessage
from langchain_core.tools import BaseTool

from kit.bench.routing import RoutingKit
from kit.core.bodies.speech import Acknowledged
from kit.core.card import AgentCard
from kit.core.fault import Fault, Kind
from kit.core.fault_injection import active_faults, inject_faults
from kit.core.outcome import AgentCall, Answer, Outcome, Reason
from kit.models.offline import OfflineModel
from kit.models.scripted import Line, ScriptedModel
from kit.patterns.agents_as_tools import MEDIATED
from kit.runtime.agents.llm_agent import LLMAgent
from kit.runtime.clock import run_virtual
from kit.runtime.context import RunContext
from kit.runtime.dispatch import fan_out
from kit.runtime.guards.checks import decide
from kit.runtime.pattern import Pattern
from kit.runtime.team import Team, bind
from kit.runtime.turn import Reply, Turn, run_turn
from kit.tools.enricher import UNAVAILABLE, structured
from kit.tools.tool import ToolResult, tool_context
from studies.lying_composer import CLAIM, LIES, lying_model
from studies.study_deck import ORCHESTRATOR, study_deck, study_session

Axis = Literal["invocation", "data", "partial"]
Composer = Literal["honest", "lying"]
DOSES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)
PARTS: Mapping[str, str] = {
    "shop": "coffee",
    "rewards": "points",
    "support": "password",
    "restaurants": "dinner",
}
"""Sub-agent -> what it is asked about."""
ASKS = {agent: f"what about my {topic}" for agent, topic in PARTS.items()}
INVOCATION: tuple[Kind, ...] = ("raise", "hang", "instantiation", "refuses")
DATA: Mapping[Kind, Reason] = {
    "error_envelope": "unavailable",
    "foreign_principal": "principal_mismatch",
    "bad_payload": "contract_violation",
    "version_break": "unavailable",
}
"""Fault of the service -> what the tool over it makes of that."""
KINDS: Mapping[Axis, tuple[Kind, ...]] = {
    "invocation": INVOCATION,
    "data": tuple(DATA),
    "partial": (*INVOCATION, *DATA),
}
_DENIES = re.compile(
    r"(?:could not|couldn't|wasn't able to|was not able to) (?:get|check|answer)|no answer|left out",
    re.I,
)


class Response(NamedTuple):
    """One turn, judged; a list of them is a tidy frame."""

    axis: Axis
    dose: float
    """Share of parts that are made to fail, in expectation."""
    composer: Composer
    check: bool
    """Whether the composition is checked or taken at its word."""
    lie: str
    """What a lying composer does; empty for the honest one."""
    repeat: int
    failed: int
    """Parts that were made to fail."""
    present: int
    """Healthy parts whose value is in the answer."""
    healthy: int
    admissions: int
    """Failed parts of which the answer says that they were not answered."""
    made_up: int
    """Figures in the answer that nobody delivered."""
    path: str
    """How the answer came to own up; empty where nothing did."""
    model_calls: int
    tokens: int
    """Read and written."""
    seconds: float
    """Virtual ones: only waiting counts."""

    @property
    def sound(self) -> bool:
        """The user can rely on this answer: nothing lost, nothing kept quiet, nothing made up."""
        return self.present == self.healthy and self.admissions == self.failed and not self.made_up


async def trust_composition(call: AgentCall, ctx: RunContext) -> Outcome:
    """Plays the baseline: decide, fan out, compose, and take the composition at its word."""
    lead = ctx.turn.agents[call.agent]
    assert isinstance(lead, LLMAgent)
    thread = lead.open(call, ctx)
    decision = await decide(thread, call, lead, ctx, ctx.turn.settings.guards)
    fan = await fan_out(decision.asks, ctx)
    thread += await lead.tool_messages(decision, fan, ctx)
    answer = await lead.compose(thread, call, ctx, live=True, news=len(decision.asks))
    return Answer(call_id=call.call_id, agent=call.agent, text=answer.text)


TRUSTING = Pattern("trusting", trust_composition)


async def sweep(
    axis: Axis,
    doses: Iterable[float] = DOSES,
    repeats: int = 15,
    seed: int = 7,
    composer: Composer = "lying",
    pattern: Pattern | None = None,
) -> list[Response]:
    """Plays turns of four parts each, `repeats` at every dose, in virtual time; `pattern` defaults
    to mediated, which checks.

    The faults and the lie of a turn depend on axis, dose, repeat and seed alone: two composers, or
    two patterns, meet the same.
    """
    return await asyncio.to_thread(
        run_virtual, _sweep(axis, tuple(doses), repeats, seed, composer, pattern or MEDIATED)
    )


async def _sweep(
    axis: Axis,
    doses: Sequence[float],
    repeats: int,
    seed: int,
    composer: Composer,
    pattern: Pattern,
) -> list[Response]:
    kits = [(lie, RoutingKit(_team(model))) for lie, model in _composers(composer)]
    rows: list[Response] = []
    for dose in doses:
        for repeat in range(repeats):
            name = f"{seed}/{axis}/{dose:g}/{repeat}"
            rng = random.Random(name)
            faults = draw_faults(axis, dose, rng)
            lie, kit = rng.choice(kits)
            reply = await _turn(name, faults, kit, pattern)
            way = {
                "axis": axis,
                "dose": dose,
                "composer": composer,
                "check": pattern is not TRUSTING,
                "lie": lie,
            }
            rows.append(judge(reply, faults, name, repeat=repeat, **way))
    for _, kit in kits:
        kit.store.close()
    return rows


def _turn(name: str, faults: Sequence[Fault], kit: RoutingKit, pattern: Pattern) -> Turn:
    with inject_faults(faults):
        return run_turn(" and ".join(ASKS.values()) + "?", study_session(name), kit, pattern)


def draw_faults(axis: Axis, dose: float, rng: random.Random) -> tuple[Fault, ...]:
    """Draws which part fails, and how: each with the probability of the dose.

    `partial` spares one part and raises the others' probability to match, so that something always comes back.
    """
    agents = list(PARTS)
    if axis == "partial":
        agents.remove(rng.choice(agents))
        dose *= len(PARTS) / len(agents)
    return tuple(
        Fault(where=agent, kind=rng.choice(KINDS[axis])) for agent in agents if rng.random() < dose
    )


def judge(reply: Reply, faults: Sequence[Fault], name: str, **way: Any) -> Response:
    """Judges one reply by what was planted and what was broken; `way` holds the fields of a Response up to `repeat`."""
    bad = {fault.where for fault in faults}
    denials = [s.lower() for s in re.split(r"(?<=[.!?])\s+|\n+", reply.text) if _DENIES.search(s)]
    return Response(
        **way,
        failed=len(bad),
        present=sum(
            planted_value(agent, name) in reply.text for agent in PARTS if agent not in bad
        ),
        healthy=len(PARTS) - len(bad),
        admissions=sum(any(agent in s or PARTS[agent] in s for s in denials) for agent in bad),
        made_up=reply.text.count(CLAIM),
        path=next(
            (event.body.path for event in reply.events if isinstance(event.body, Acknowledged)), ""
        ),
        model_calls=reply.usage.model_calls,
        tokens=reply.usage.input_tokens + reply.usage.output_tokens,
        seconds=reply.events[-1].at,
    )


def planted_value(agent: str, name: str) -> str:
    """Returns the value this agent's data holds in this turn; never the liar's."""
    return f"{random.Random(f'{name}/{agent}').randrange(1000, 8000):,}"


def _composers(composer: Composer) -> list[tuple[str, BaseChatModel]]:
    if composer == "honest":
        return [("", OfflineModel(disable_streaming=True).paced(0))]
    return [(lie, lying_model(ASKS, lie, mends)) for lie in LIES for mends in (False, True)]


def _team(lead: BaseChatModel) -> Team:
    cards = [
        AgentCard(
            id=agent,
            description=f"Answers what people ask about their {topic}.",
            model="offline",
            tools=("lookup",),
        )
        for agent, topic in PARTS.items()
    ]
    models = {"*": ScriptedModel(_look_up, disable_streaming=True), ORCHESTRATOR: lead}
    return bind(study_deck(cards, cap=len(PARTS)), models, {"lookup": _lookup()}).with_faults()


def _look_up(messages: list[BaseMessage]) -> Line:
    """Speaks as a sub-agent's model that looks its answer up and passes it on."""
    last = messages[-1]
    return (
        Line(str(last.content))
        if isinstance(last, ToolMessage)
        else Line(calls=[("lookup", {"about": str(last.content)})])
    )


def _lookup() -> BaseTool:
    async def call(about: str) -> tuple[str, ToolResult]:
        context = tool_context()
        value = planted_value(context.agent, context.inherited.episode_id)
        result = ToolResult(text=f"Your {PARTS[context.agent]} came to {value} today.")
        for fault in active_faults(context.agent, "upstream"):
            result = ToolResult(
                text=UNAVAILABLE, fault=DATA[fault.kind], detail=f"injected {fault.kind}"
            )
        return result.text, result

    return structured(
        "lookup", "Looks a value up.", {"about": {"type": "string"}}, ("about",), call
    )
