"""A turn forked at a span: what came before is played from its trace, from there on another model,
pattern or prompt answers."""

import hashlib
from dataclasses import dataclass, replace
from typing import Any, Protocol

from kit.core.bodies.call import ModelStarted
from kit.core.bodies.turn import Fork
from kit.core.context import Principal
from kit.core.errors import CassetteError, FaultError, ForkError
from kit.core.fault import parse_all
from kit.core.fault_injection import inject_faults
from kit.core.model import OFFLINE
from kit.core.record import CohortPrompt, SessionRecall, TurnRecord
from kit.patterns import PATTERNS
from kit.patterns.forked_turn import ADVICE, ForkedTurn
from kit.patterns.plan_execute import PLAN_EXECUTE
from kit.patterns.stages import Stages
from kit.runtime.agents.llm_agent import LLMAgent
from kit.runtime.pattern import Pattern
from kit.runtime.recording.mismatch import misfit
from kit.runtime.recording.recorded_call import Take
from kit.runtime.recording.turn_recording import TurnRecording, turn_recording
from kit.runtime.team import Team
from kit.runtime.turn import Turn, run_turn
from kit.sinks.recorder import Recorder
from kit.stores.protocol import Store


def check_prompts(
    turn: TurnRecord, recording: TurnRecording, team: Team, store: Store, other: str | None
) -> None:
    """Raises CassetteError where a card of what is played has changed since; `other` is the agent
    that gets another prompt."""
    cohorts = {team.root: recording.turn.cohort} | {
        one.started.agent: one.started.cohort for one in recording.agents.values()
    }
    for name, cohort in cohorts.items():
        prompt = getattr(team.agents.get(name), "prompt", None)
        if name == other or not cohort or prompt is None or prompt.cohort == cohort:
            continue
        kept = store.prompt(cohort, turn.started_at)
        before = (("prompt", kept.text if kept else ""), ("cohort", cohort))
        now = (("prompt", prompt.prefix if kept else ""), ("cohort", prompt.cohort))
        raise CassetteError(
            misfit(
                f"turn {turn.id}",
                "",
                f"the card of {name}",
                now,
                [Take(place=name, request=before)],
                ADVICE,
            )
        )


def _with_prompt(team: Team, name: str, text: str) -> tuple[Team, CohortPrompt]:
    """Returns the team with another stable prompt for one agent, and that prompt. Raises ForkError
    where the agent has none."""
    agent = team.agents.get(name)
    if not isinstance(agent, LLMAgent):
        raise ForkError(f"{name!r} has no prompt here: choose another span, or another model")
    cohort = hashlib.sha256(f"{agent.prompt.cohort}\0{text}".encode()).hexdigest()[:12]
    prompt = replace(agent.prompt, prefix=text, cohort=cohort)
    models: dict[str, Any] = {}
    for role in ("model", "fallback", "composer"):
        models[role] = getattr(agent, role)
    bound: dict[str, Any] = {}
    for role, model in models.items():
        bound[role] = model and replace(model, prefix=text)
    tools = tuple(dict(tool) for tool in agent.model.tools)
    return (
        team.with_agents({name: replace(agent, prompt=prompt, **bound)}),
        CohortPrompt(cohort=cohort, agent=agent.card.id, text=text, tools=tools),
    )


class Forkable(Protocol):
    """What a fork needs of the kit that starts it."""

    @property
    def team(self) -> Team: ...
    @property
    def store(self) -> Store: ...
    @property
    def recorder(self) -> Recorder: ...
    @property
    def today(self) -> str: ...
    @property
    def faults(self) -> bool: ...
    @property
    def stages(self) -> Stages: ...

    def on(self, model: str) -> "Forkable":
        """The same kit on another model."""
        ...

    def recall_before(self, turn: TurnRecord) -> SessionRecall:
        """What a turn's session held before it."""
        ...


@dataclass(frozen=True)
class ForkHost:
    """What runs a turn that plays a stored one."""

    team: Team
    store: Store
    recorder: Recorder
    pattern: Pattern
    today: str
    cassette: None = None


def fork_turn(
    kit: Forkable,
    who: Principal,
    turn_id: str,
    at: str,
    model: str | None = None,
    pattern: str | None = None,
    prompt: str | None = None,
    past: SessionRecall | None = None,
) -> Turn:
    """Starts a turn of a principal anew at a span: a model call, or a sub-agent. What began after
    the span had ended is called, and the span itself; all else is played, and nothing is called for
    it.

    Raises ForkError for what cannot be played and for a turn that is not there, or is somebody
    else's, CassetteError where a card has changed since, and what `Kit.ask` raises. `past` is what
    its session held before, where the caller has it already.
    """
    store = kit.store
    turn = store.turn(turn_id, who)
    if turn is None:
        raise ForkError(f"there is no turn {turn_id!r} of {who}: name one of its own")
    if PLAN_EXECUTE.name in (turn.pattern, pattern):
        raise ForkError(
            "a plan is not forked: `resume` takes it up after its last complete step (docs/plans.md)"
        )
    if model:
        base = kit.on(model)
    else:
        base = kit
    chosen = PATTERNS[pattern or turn.pattern]
    past = past or kit.recall_before(turn)
    session = store.with_souls(past.session)
    team = base.stages.team(chosen, persona=session.tenant_persona)
    recording = turn_recording(store.events(turn.id, who), at, team.root)
    fork = Fork(turn_id=turn_id, at=at, model=model, pattern=pattern)
    if isinstance(recording.at, ModelStarted) and not isinstance(
        team.agents.get(recording.agent), LLMAgent
    ):
        raise ForkError(
            f"{recording.agent!r} works elsewhere: fork at its own span, which asks it anew as a whole"
        )
    if prompt is not None:
        fork = fork.replace(prompt=recording.agent)
        team, cohort_prompt = _with_prompt(team, recording.agent, prompt)
        store.keep_prompts([cohort_prompt])
    check_prompts(turn, recording, team, store, fork.prompt)
    planned = parse_all(recording.turn.faults, team.agents, team.root)
    if planned and not kit.faults:
        raise FaultError(
            "this turn was made to fail, and this kit was opened without faults: open it with open_kit(faults=True)"
        )
    forked = ForkedTurn(fork, recording, {OFFLINE.key: OFFLINE, **team.deck.models})
    chosen = forked.pattern(chosen)
    host = ForkHost(forked.team(team), store, kit.recorder, chosen, recording.today or kit.today)
    with inject_faults(planned):
        return run_turn(
            turn.message, recording.told(session), host, chosen, cap=recording.turn.cap, past=past
        )
