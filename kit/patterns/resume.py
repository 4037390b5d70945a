"""A turn that goes on: one that paused for its user, or whose process died. What had ended is played from its trace."""

from collections.abc import Iterator, Sequence

from pydantic import SecretStr

from kit.compose.canary import new_for
from kit.core.bodies.turn import PlanTaken, Resumed
from kit.core.context import Principal, Session
from kit.core.errors import ForkError, ResumeError
from kit.core.event import Event
from kit.core.fault_injection import inject_faults
from kit.core.record import TurnRecord
from kit.patterns import modes_of
from kit.patterns.fork import Forkable, ForkHost, check_record, playing_host
from kit.patterns.plan_execute import PLAN, resumed
from kit.patterns.stages import NO_FLAGS, Flags
from kit.runtime.act_ledger import ActLedger, Answers, Resumption, acts_of
from kit.runtime.recording.stored_turn import StoredTurn, turn_to_resume
from kit.runtime.team import Team
from kit.runtime.turn import Turn, run_turn


def resume_turn(
    kit: Forkable,
    principal: Principal,
    turn_id: str,
    answers: Answers = None,
    flags: Flags = NO_FLAGS,
    key: SecretStr | None = None,
) -> Turn:
    """Lets a turn of a principal go on, under its own id: what had ended is played, the rest is
    called by the cards' strategies.

    `flags`: those of the session that it was asked in, which the store does not keep; nor does it
    keep a request's `key`. A plan is taken up by a turn of its own. Raises ResumeError for a turn that
    is not there, is somebody else's, has ended, lacks an answer or cannot be played, CassetteError
    where a card has changed since, FaultError where it was made to fail and this kit was opened without faults.
    """
    store = kit.store
    turn = store.turn(turn_id.removeprefix(PLAN), principal)
    if turn is None:
        raise ResumeError(f"there is no turn {turn_id!r} of {principal}: name one of its own")
    events = store.events(turn.id, principal)
    pattern = modes_of(kit.team.deck)[turn.pattern]
    base = kit
    # Of a plan nothing is played, so that any model can go on with it.
    if not pattern.is_plan and kit.team.orchestrator.model.spec.key != turn.model:
        base = kit.on(turn.model)
    past = kit.recall_before(turn)
    session = store.with_souls(past.session.replace(id=turn.session_id, flags=dict(flags)))
    newer = new_for(kit.team.deck, session.key)
    team = base.stages.team(pattern, flags=flags, persona=session.tenant_persona, newer=newer)
    if pattern.is_plan:
        if not turn_id.startswith(PLAN):
            answers = _to_questions_of(events, answers)
        return _resume_plan(kit, turn, session, team, answers, key)
    acts = _acts_with_answers(turn, events, answers)
    try:
        stored_turn = _stored_turn(team, events)
    except ForkError as error:
        raise ResumeError(str(error)) from error
    faults = check_record(kit, turn, stored_turn, team, None)
    # Last of all checks: a turn that is claimed and not begun would be lost to everybody.
    if not store.claim_turn(turn.id):
        raise ResumeError(
            f"turn {turn.id!r} is {turn.status}: only one that is paused or interrupted can go on, and only once"
        )
    if acts.has_yes():
        stored_turn.age_answers()
    host = playing_host(kit, acts.resumed(turn.id), stored_turn, team, pattern)
    with inject_faults(faults):
        return run_turn(
            turn.message,
            stored_turn.session_of(session),
            host,
            host.pattern,
            cap=turn.cap,
            past=past.replace(session=session),
            turn_id=turn.id,
            resumes=Resumption(turn.started_at, acts),
            key=key,
        )


def _resume_plan(
    kit: Forkable,
    turn: TurnRecord,
    session: Session,
    team: Team,
    answers: Answers,
    key: SecretStr | None,
) -> Turn:
    """Starts a turn that takes up the plan of another one after its last complete step."""
    plan_id = plan_of(kit.store.events(turn.id, turn.principal)) or f"{PLAN}{turn.id}"
    last, events = last_turn_of(kit, turn, plan_id)
    if acts_of(events).has_answers():
        # A plan keeps its id from question to question, so that a bare yes to it is one to the first.
        answers = _to_questions_of([], answers)
    current = _acts_with_answers(last, events, answers).resumed(last.id)

    def origin(turn_id: str) -> Resumed:
        """What the other turns of the plan have settled by now, and what was answered here."""
        acts = ActLedger()
        for record, turn_events in reversed(list(turns_of(kit, turn, plan_id))):
            if record.id != turn_id:
                acts.take_over(acts_of(turn_events).resumed(record.id))
        acts.take_over(current)
        return acts.resumed(last.id).replace(asked=current.asked)

    pattern = resumed(plan_id, origin)
    host = ForkHost(team, kit.store, kit.recorder, pattern, kit.today)
    return run_turn(turn.message, session, host, pattern, key=key)


def _to_questions_of(events: Sequence[Event], answers: Answers) -> Answers:
    """Returns a bare yes or no as one to what a turn has asked: it is said to nothing that was asked later."""
    if not isinstance(answers, bool):
        return answers
    return dict.fromkeys(acts_of(events).questions(), answers)


def plan_of(events: Sequence[Event]) -> str | None:
    """Returns the id of the plan that a turn worked on; None of a turn that died before it had one."""
    for event in events:
        if isinstance(event.body, PlanTaken):
            return event.body.plan_id
    return None


def last_turn_of(kit: Forkable, turn: TurnRecord, plan_id: str) -> tuple[TurnRecord, list[Event]]:
    """Returns the newest turn that worked on a plan, and its events: what it asked is open, not what others asked."""
    return next(turns_of(kit, turn, plan_id))


def turns_of(
    kit: Forkable, turn: TurnRecord, plan_id: str
) -> Iterator[tuple[TurnRecord, list[Event]]]:
    """Yields the turns that worked on a plan, with their events, the newest first; `turn` is one of them."""
    principal = turn.principal
    is_listed = False
    for record in kit.store.turns(turn.session_id, principal.tenant_id, principal.user_id):
        if record.pattern != turn.pattern:
            continue
        events = kit.store.events(record.id, principal)
        if record.id == turn.id or plan_of(events) == plan_id:
            is_listed = is_listed or record.id == turn.id
            yield record, events
    # In a long session it is none of the newest.
    if not is_listed:
        yield turn, kit.store.events(turn.id, principal)


def _stored_turn(team: Team, events: list[Event]) -> StoredTurn:
    """Reads what is played: by each card, what becomes of an agent that was at work when the process died."""
    partly: set[str] = set()
    reused: set[str] = set()
    for agent_id, agent in team.agents.items():
        if agent.card.resume == "partial":
            partly.add(agent_id)
        elif agent.card.resume == "reuse":
            reused.add(agent_id)
    return turn_to_resume(events, team.root, partly, reused)


def _acts_with_answers(turn: TurnRecord, events: list[Event], answers: Answers) -> ActLedger:
    """Reads the acts of a turn, with the user's answers. Raises ResumeError while a question is open."""
    acts = acts_of(events)
    acts.take_answers(answers)
    if questions := acts.questions():
        raise ResumeError(f"turn {turn.id!r} waits for an answer: {' '.join(questions.values())}")
    return acts
