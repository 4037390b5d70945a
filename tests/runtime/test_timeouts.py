"""A time-out is traced to what took the time, and every remedy on the menu is configuration that mends it."""

import asyncio
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from langchain_core.messages import BaseMessage
from langchain_core.tools import BaseTool

from kit.compose.deck import Deck, load_deck
from kit.core.card import AgentCard
from kit.core.outcome import AgentCall, Answer, Failure, Outcome
from kit.core.timeout import REMEDIES, Cause, Diagnosis, Remedy, diagnoses
from kit.metrics.summary import metrics
from kit.models.scripted import Line, ScriptedModel
from kit.patterns.topology import with_topologies
from kit.runtime.context import RunContext
from kit.runtime.team import ModelAccess, bind
from kit.runtime.turn import Reply, run_turn
from kit.stores.sqlite import SqliteStore
from kit.tools.enricher import structured
from kit.tools.tool import ToolResult
from tests.kits import ALICE, SmallKit, answering, asks, failing, leading
from tests.worlds import TOOL_IDS, toolbox

BUDGET = 4.0
SEARCH = "search_offers"
RATED = {
    "type": "object",
    "properties": {"text": {"type": "string"}, "confidence": {"type": "number"}},
    "required": ["text"],
}
MODELS: Mapping[str, Any] = {
    "simulated-slow": {"provider": "simulated", "law": {"latency": {"median": 60}}},
    "simulated-quick": {"provider": "simulated", "law": {"latency": {"median": 0.5}}},
    "thinker": {"provider": "openai", "name": "gpt-5.4-mini", "api": "responses", "effort": "high"},
}
CARDS: Mapping[str, Mapping[str, Any]] = {
    "lead": {"sub_agents": ["explainer"], "model": "offline"},
    "explainer": {"model": "simulated-slow", "policy": {"time_budget_ms": 4000}},
    "quick": {
        "model": "simulated-quick",
        "handoff": {"output_schema": RATED},
        "policy": {"time_budget_ms": 4000},
    },
    "editor": {
        "model": "simulated-slow",
        "handoff": {"fields": {"draft": {"required": True}}},
        "policy": {"time_budget_ms": 4000},
    },
}


def deck_of(
    folder: Path, cause: Cause, card: Mapping[str, Any] = {}, deck: Mapping[str, Any] = {}
) -> Deck:
    """The deck as files: the explainer has the tools by which this befalls it; these keys are in
    its card and in deck.yaml."""
    (folder / "deck").mkdir()
    (folder / "blocks").mkdir()
    files: dict[str, Any] = {
        "models.yaml": MODELS,
        "deck/deck.yaml": {"orchestrator": "lead", "required_blocks": [], **deck},
    }
    for name, fields in CARDS.items():
        own = {"tools": HELD[cause], **card} if name == "explainer" else {}
        files[f"deck/{name}.yaml"] = {"id": name, "description": f"About {name}.", **fields, **own}
    for name, content in files.items():
        (folder / name).write_text(yaml.safe_dump(content))
    return load_deck(folder / "deck", (*TOOL_IDS, "notes"))


def tools() -> dict[str, Any]:
    """A real tool of the context service, which hangs, and one that has something to say."""

    async def hanging(request: Any) -> Any:
        await asyncio.sleep(600)

    async def note() -> tuple[str, ToolResult]:
        return "a note", ToolResult(text="a note")

    nobody: Any = None
    notes: BaseTool = structured("notes", "Notes.", {}, (), note)
    return {**toolbox(hanging, nobody, nobody, nobody), "notes": notes}


def looks_up(messages: list[BaseMessage]) -> Line:
    """A quick model that uses both tools at once, and then says what came of it."""
    if messages[-1].type != "tool":
        return Line(calls=[(SEARCH, {"query": "coffee"}), ("notes", {})], delay=0.2)
    return Line("What the notes say.", delay=0.2)


def broods(messages: list[BaseMessage]) -> Line:
    """A model that looks things up again and again."""
    return Line(calls=[("notes", {})], delay=0.9)


HELD: Mapping[Cause, list[str]] = {
    "tool": [SEARCH, "notes"],
    "model": ["notes"],
    "reasoning": ["notes"],
}
FAULTS: Mapping[Cause, dict[str, Any]] = {
    "tool": {"explainer": ScriptedModel(looks_up)},
    "model": {},  # simulated, 60 s, by its card
    "reasoning": {"explainer": ScriptedModel(broods)},
}
"""What makes the explainer run out of time -> the models that do it."""


def kit_of(deck: Deck, models: Mapping[str, Any]) -> SmallKit:
    told = {
        "lead": leading(asks("explainer")),
        **models,
    }
    return SmallKit(with_topologies(bind(deck, told, tools())), SqliteStore(":memory:"))


async def turn_of(kit: SmallKit) -> Reply:
    return await run_turn("explain this", ALICE, kit)


def found(reply: Reply) -> dict[str, Diagnosis]:
    return {diagnosis.agent: diagnosis for _, diagnosis in diagnoses(reply.trace)}


# What it was


@pytest.mark.req("SO-20")
@pytest.mark.parametrize(
    ("cause", "slowest", "seconds", "calls"),
    [("tool", SEARCH, 3.8, 1), ("model", "simulated-slow", 4.0, 1), ("reasoning", "", 4.0, 5)],
)
async def test_a_time_out_is_traced_to_what_took_the_time(
    cause: Cause, slowest: str, seconds: float, calls: int, tmp_path: Path
):
    reply = await turn_of(kit_of(deck_of(tmp_path, cause), FAULTS[cause]))
    [outcome] = reply.outcomes
    assert isinstance(outcome, Failure) and outcome.reason == "timeout"
    diagnosis = found(reply)["explainer"]
    assert (diagnosis.cause, diagnosis.slowest, diagnosis.calls) == (cause, slowest, calls)
    assert (diagnosis.seconds, diagnosis.budget) == (pytest.approx(seconds), pytest.approx(BUDGET))
    assert all(str(remedy) in str(diagnosis) for remedy in REMEDIES[cause])


RACE: Mapping[str, Any] = {
    "topologies": {"chat": {"explainer": {"kind": "race", "members": ["explainer", "quick"]}}}
}


@dataclass(frozen=True)
class Dawdler:
    """An agent of somebody's own, which leaves no spans."""

    card: AgentCard
    time_budget: float | None = BUDGET

    async def run(self, call: AgentCall, ctx: RunContext) -> Outcome:
        await asyncio.sleep(60)
        raise AssertionError("its time is over by then")


@pytest.mark.req("SO-20")
async def test_what_spans_do_not_show_is_not_made_up(tmp_path: Path):
    kit = kit_of(deck_of(tmp_path, "model"), {})
    kit.team = kit.team.with_agents({"explainer": Dawdler(kit.team.agents["explainer"].card)})
    diagnosis = found(await turn_of(kit))["explainer"]
    assert (diagnosis.cause, diagnosis.remedies, diagnosis.seconds) == (
        "unknown",
        (),
        pytest.approx(BUDGET),
    )


# What helps

QUICK = {"quick": answering(json.dumps({"text": "Quick.", "confidence": 0.9}), 0.5)}
LATE = {"time_budget_ms": 4000}
CHANGES: Mapping[str, Mapping[str, Any]] = {
    "mend the tool": {"tool_config": {SEARCH: {"timeout_ms": 1000}}},
    "let a faster": {
        "fallback_model": "simulated-quick",
        "policy": {**LATE, "model_time_ms": 1000},
    },
    "let it think": {"tuning": {"reasoning_effort": "low"}},
    "give it less": {
        "handoff": {"closed": True, "max_query_tokens": 9, "fields": {"about": {"max_tokens": 9}}}
    },
    "until then": RACE,
    "split it": {
        "topologies": {
            "chat": {"explainer": {"kind": "pipeline", "members": ["quick", "editor"], "bar": 0.6}}
        }
    },
}
"""First words of a remedy -> the keys it asks for, with values, in the explainer's card or in deck.yaml."""
MENU = [(cause, remedy) for cause, remedies in REMEDIES.items() for remedy in remedies]
IN_THE_REQUEST = ("let it think", "give it less")
"""Their effect is in what the model is sent: the bounds of a hand-off, and the effort below."""


def dotted(value: Any, path: str = "") -> Iterator[str]:
    """Keys of a file as the menu writes them, the names that a reader chooses left open."""
    chosen = {SEARCH: "<tool>", "chat": "<surface>", "explainer": "<agent>", "about": "<field>"}
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from dotted(inner, f"{path}.{chosen.get(key, key)}".lstrip("."))
    else:
        yield from (path, f"{path}: {value}")


@pytest.mark.req("SO-20", "SO-13")
@pytest.mark.parametrize(
    ("cause", "remedy"), MENU, ids=[f"{cause}: {remedy.says[:20]}" for cause, remedy in MENU]
)
async def test_a_remedy_is_configuration_by_the_keys_it_names_and_brings_an_answer_in_the_same_time(
    cause: Cause, remedy: Remedy, tmp_path: Path
):
    [change] = [change for words, change in CHANGES.items() if remedy.says.startswith(words)]
    assert set(remedy.keys) <= set(dotted(change))
    deck = deck_of(tmp_path, cause, **{remedy.where: change})
    if remedy.says.startswith(IN_THE_REQUEST):
        return
    [outcome] = (await turn_of(kit_of(deck, {**FAULTS[cause], **QUICK}))).outcomes
    assert isinstance(outcome, Answer), outcome
    assert outcome.timing is not None and outcome.timing.ended - outcome.timing.started < BUDGET
    assert deck.policy(deck.cards["explainer"]).time_budget_ms == 4000


@pytest.mark.req("SO-20", "SO-13")
def test_thinking_less_reaches_the_model(tmp_path: Path):
    efforts: list[Any] = []
    for name, tuning in (("as-is", {}), ("less", CHANGES["let it think"])):
        (tmp_path / name).mkdir()
        deck = deck_of(tmp_path / name, "model", {"model": "thinker", **tuning})
        agent: Any = bind(deck, None, tools(), ModelAccess(api_key="none")).agents["explainer"]
        efforts.append(agent.model.runnable.inner.reasoning_effort)
    assert efforts == ["high", "low"]


# How often


@pytest.mark.req("SO-20")
async def test_the_share_of_each_cause_is_one_call(tmp_path: Path):
    deck = deck_of(tmp_path, "tool")
    kit = kit_of(deck, FAULTS["tool"])
    for models in (
        FAULTS["tool"],
        {},
        {},
        FAULTS["reasoning"],
        {"explainer": failing(OSError("x"))},
    ):
        kit.team = kit_of(deck, models).team
        await turn_of(kit)
    rates = metrics(kit.store).shares("timeout_rate")
    assert {cause: (rate.right, rate.n) for cause, rate in rates.items()} == {
        "tool": (1, 4),
        "model": (2, 4),
        "reasoning": (1, 4),
        "unknown": (0, 4),
    }
    assert ("model, of 4 time-outs", 0.5) in [
        (r["of"], r["value"]) for r in metrics(kit.store).rows() if r["metric"] == "timeout_rate"
    ]
