"""A turn forked at a span: what came before is played from its trace, from there on another model,
pattern or prompt answers."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from kit.compose.canary import new_for
from kit.core.bodies.call import ModelStarted
from kit.core.bodies.turn import Fork, Resumed
from kit.core.context import Principal
from kit.core.errors import CassetteError, FaultError, ForkError
from kit.core.fault import Fault, parse_all
from kit.core.fault_injection import inject_faults
from kit.core.record import CohortPrompt, SessionRecall, TurnRecord
from kit.patterns import modes_of
from kit.patterns.stages import Stages
from kit.patterns.turn_player import ADVICE, TurnPlayer
from kit.runtime.agents.llm_agent import LLMAgent
from kit.runtime.handle import Host
from kit.runtime.pattern import Pattern
from kit.runtime.recording.mismatch import mismatch
from kit.runtime.recording.recorded_call import RecordedCall
from kit.runtime.recording.stored_turn import StoredTurn, turn_to_fork
from kit.runtime.team import Team
from kit.runtime.turn import Turn, run_turn
from kit.sinks.recorder import Recorder

if TYPE_CHECKING:
    from kit.stores.turn_store import TurnStore


def _with_prompt(team: Team, name: str, text: str) -> tuple[Team, CohortPrompt]:
    """Returns the team with another stable prompt for one agent, and that prompt. Raises ForkError
    where the agent has none."""
    agent = team.agents.get(name)
    if not isinstance(agent, LLMAgent):
        raise ForkError(f"{name!r} has no prompt here: choose another span, or another model")
    cohort = hashlib.sha256(f"{agent.prompt.cohort}\0{text}".encode()).hexdigest()[:12]
    prompt = replace(agent.prompt, prefix=text, cohort=cohort)
    bound: dict[str, Any] = {}
    for role in ("model", "fallback", "composer"):
        model = getattr(agent, role)
        bound[role] = model and replace(model, prefix=text)
    tools = tuple(dict(tool) for tool in agent.model.tools)
    return (
        team.with_agents({name: replace(agent, prompt=prompt, **bound)}),
        CohortPrompt(cohort=cohort, agent=agent.card.id, text=text, tools=tools),
    )


class Forkable(Host, Protocol):
    """What a fork needs of the kit that starts it."""

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
    store: "TurnStore"
    recorder: Recorder
    pattern: Pattern
    today: str
    cassette: None = None


def fork_turn(
    kit: Forkable,
    principal: Principal,
    turn_id: str,
    span_id: str,
    model: str | None = None,
    pattern: str | None = None,
    prompt: str | None = None,
    past: SessionRecall | None = None,
    faults: Sequence[str | Fault] | None = None,
) -> Turn:
    """Starts a turn of a principal anew at a span: a model call, or a sub-agent. What began after
    the span had ended is called, and the span itself; all else is played, and nothing is called for
    it.

    Raises ForkError for what cannot be played and for a turn that is not there, or is somebody
    else's, CassetteError where a card has changed since, and what `Kit.ask` raises. `past` is what
    its session held before, where the caller has it already. `faults` are what is called fails by;
    None: by what the turn was made to fail by.
    """
    store = kit.store
    turn = store.turn(turn_id, principal)
    if turn is None:
        raise ForkError(f"there is no turn {turn_id!r} of {principal}: name one of its own")
    modes = modes_of(kit.team.deck)
    chosen_pattern = modes[pattern or turn.pattern]
    if chosen_pattern.is_plan or modes[turn.pattern].is_plan:
        raise ForkError(
            "a plan is not forked: `resume` takes it up after its last complete step (docs/plans.md)"
        )
    base = kit.on(model) if model else kit
    past = past or kit.recall_before(turn)
    session = store.with_souls(past.session)
    newer = new_for(kit.team.deck, turn.session_key)
    team = base.stages.team(chosen_pattern, persona=session.tenant_persona, newer=newer)
    stored_turn = turn_to_fork(store.events(turn.id, principal), span_id, team.root)
    fork = Fork(turn_id=turn_id, at=span_id, model=model, pattern=pattern)
    agent = stored_turn.agent
    asks_model = isinstance(stored_turn.fork_point, ModelStarted)
    if asks_model and not isinstance(team.agents.get(agent), LLMAgent):
        raise ForkError(
            f"{agent!r} works elsewhere: fork at its own span, which asks it anew as a whole"
        )
    if prompt is not None:
        fork = fork.replace(prompt=agent)
        team, cohort_prompt = _with_prompt(team, agent, prompt)
        store.keep_prompts([cohort_prompt])
    # Faults on purpose belong to the turn, unless others are what the fork is for.
    own_faults = check_record(kit, turn, stored_turn, team, fork.prompt)
    if faults is not None:
        own_faults = parse_all(faults, team.agents, team.root)
        check_faults(kit, own_faults)
        fork = fork.replace(faults=tuple(map(str, own_faults)))
    host = playing_host(kit, fork, stored_turn, team, chosen_pattern)
    with inject_faults(own_faults):
        return run_turn(
            turn.message,
            stored_turn.session_of(session),
            host,
            host.pattern,
            cap=stored_turn.turn.cap,
            past=past,
        )


def check_record(
    kit: Forkable, turn: TurnRecord, stored_turn: StoredTurn, team: Team, reworded: str | None
) -> tuple[Fault, ...]:
    """Returns the faults that a stored turn was made to fail with.

    Raises CassetteError where a card of what is played has changed since, but for the agent that is
    `reworded`, and FaultError where this kit was opened without faults.
    """
    cohorts = {team.root: stored_turn.turn.cohort, **stored_turn.cohorts}
    for name, cohort in cohorts.items():
        prompt = getattr(team.agents.get(name), "prompt", None)
        if name == reworded or not cohort or prompt is None or prompt.cohort == cohort:
            continue
        old = kit.store.prompt(cohort, turn.started_at)
        old_request = (("prompt", old.text if old else ""), ("cohort", cohort))
        # A prompt that the store did not keep is named by its cohort alone.
        now = (("prompt", prompt.prefix if old else ""), ("cohort", prompt.cohort))
        recorded = [RecordedCall(place=name, request=old_request)]
        card = f"the card of {name}"
        raise CassetteError(mismatch(f"turn {turn.id}", card, now, recorded, ADVICE))
    faults = parse_all(stored_turn.faults, team.agents, team.root)
    check_faults(kit, faults)
    return faults


def check_faults(kit: Forkable, faults: Sequence[Fault]) -> None:
    """Raises FaultError where a turn is to fail in a kit that cannot make it."""
    if faults and not kit.faults:
        raise FaultError(
            "this turn is made to fail, and this kit was opened without faults: open it with open_kit(faults=True)"
        )


def playing_host(
    kit: Forkable, origin: Fork | Resumed, stored_turn: StoredTurn, team: Team, pattern: Pattern
) -> ForkHost:
    """Returns what runs a turn in which a stored one is played."""
    player = TurnPlayer(origin, stored_turn, team.deck.models)
    return ForkHost(
        player.team(team),
        kit.store,
        kit.recorder,
        player.pattern(pattern),
        stored_turn.today or kit.today,
    )
