"""run_turn(): a message in, events out, a reply at the end. One turn is one task; it ends in order however it ends."""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from operator import attrgetter
from typing import cast

from pydantic import SecretStr
from uuid_utils import uuid7

from kit.compose.locale import locale_of
from kit.core.bodies.speech import Text, TextReplaced
from kit.core.bodies.turn import Completed, Routing, Thinking, TurnStarted, TurnUsage
from kit.core.context import DynamicContext, InheritedContext, Recollection, Session
from kit.core.display.turn_parts import TurnStatus, final_status, turn_parts
from kit.core.errors import SessionError, StoreBusy, StoreError
from kit.core.event import Event
from kit.core.fault_injection import Injection, current_injection
from kit.core.model import OFFLINE
from kit.core.outcome import (
    AgentCall,
    Answer,
    CapBehavior,
    Failure,
    RoutedOutcome,
    RoutingDecision,
    Usage,
)
from kit.core.picture import Picture, check_count, mark_pictures
from kit.core.record import Message, SessionRecall, TurnRecord
from kit.core.secret import with_key, without_secret_words, without_secrets
from kit.core.transcript import transcript
from kit.core.value import builder
from kit.metrics.measures import measure
from kit.models.direct_call import langsmith_hears
from kit.models.json_prose import prose
from kit.runtime.act_ledger import Paused, Resumption
from kit.runtime.answer.acknowledge import rescued
from kit.runtime.answer.clauses import only_refuses
from kit.runtime.answer.owed import help_with, still_asked, stopped, unread, with_mentions
from kit.runtime.budget import Ledger
from kit.runtime.context import RunContext, TurnState
from kit.runtime.dispatch import run_to_outcome, unrecorded
from kit.runtime.guards.checks import answer_to_danger
from kit.runtime.handle import Alarm, Host, Reply, Status, Turn
from kit.runtime.log import TurnLog
from kit.runtime.memory import SUMMARY_NOTE, Memory, dialogue
from kit.runtime.message import clean, decline
from kit.runtime.pattern import Interrupted, Pattern
from kit.runtime.speech.narration import MARK, narration
from kit.runtime.speech.progress import Progress

logger = logging.getLogger("kit.turn")
_inherited = builder(InheritedContext)
_dynamic = builder(DynamicContext)
_turn_started = builder(TurnStarted)
_turn_record = builder(TurnRecord)
_completed = builder(Completed)
_routing = builder(Routing)
_turn_usage = builder(TurnUsage)
_call = builder(AgentCall)
_THINKING = Thinking()
_NO_CONTEXT = nullcontext()
PATIENCE = 5.0
"""Seconds a turn waits for a store that others write to."""
LATE = 1.0
"""Seconds that old turns may still be summed up for once the answer is given; the rest is tried again next time."""


def run_turn(
    message: str,
    session: Session,
    kit: Host,
    pattern: Pattern | None = None,
    *,
    cap: int | None = None,
    history: Sequence[Message] | None = None,
    in_play: Sequence[str] | None = None,
    past: SessionRecall | None = None,
    turn_id: str | None = None,
    images: Sequence[Picture] = (),
    resumes: Resumption | None = None,
    key: SecretStr | None = None,
) -> Turn:
    """Starts a turn on the running loop and returns its handle at once.

    `pattern` defaults to the kit's; `cap` to the deck's. `history` and `in_play`, or a `past` with
    its lines, stand in for what the store remembers of the session, for callers that bring a
    conversation of their own. `images` come with the message. `resumes`: the stored turn of that id
    goes on. `key` opens the skill service for this turn. Raises SessionError when the session is
    another user's: nobody reads a stranger's history; PictureError when there are too many images.
    """
    text = clean(message)
    pictures: tuple[Picture, ...] = ()
    if images:
        pictures = check_count(images)
        text = mark_pictures(text, pictures)
    # Ids stand in log lines, file names and SQL parameters, where a control character or half a pair breaks the
    # reader.
    principal = session.principal
    names = f"{session.id}{principal.tenant_id}{principal.user_id}"
    if clean(names) != names.strip():
        raise SessionError(
            "ids of sessions, tenants and users hold neither control characters nor halves of a pair"
        )
    past = past or kit.store.recall(session.key)
    if past is not None and past.session.principal != principal:
        raise SessionError(
            f"session {session.id!r} belongs to someone else; start a new one under another id"
        )
    clock = asyncio.get_running_loop().time
    secrets = kit.team.secrets if key is None else with_key(kit.team.secrets, key)
    runner = _Runner(
        message=text,
        session=session,
        kit=kit,
        pattern=pattern or kit.pattern,
        log=TurnLog(turn_id or uuid7().hex, clock, kit.team.statuses, secrets),
        past=past,
        history=history,
        in_play=in_play,
        cap=cap,
        pictures=pictures,
    )
    kit.store.at_work[runner.log.turn_id] = session.key
    if resumes is not None:
        runner.started_at = resumes.started_at
        runner.state.acts = resumes.acts
    runner.state.key = key
    return Turn(runner)


class _Runner:
    """The work of one turn, from its message to its reply."""

    begun = False
    stop_requested = False
    at_work = False
    injection: Injection | None = None
    """What the turn is made to fail by; None where nothing can be."""
    started_at: float | None = None
    """Set where a stored turn goes on."""
    unsaved: str | None = None
    """Why the store does not have the turn."""
    _ending_task: asyncio.Task[None] | None = None
    """Ends a turn whose work was left behind."""

    def __init__(
        self,
        *,
        message: str,
        session: Session,
        kit: Host,
        pattern: Pattern,
        log: TurnLog,
        past: SessionRecall | None,
        history: Sequence[Message] | None,
        in_play: Sequence[str] | None,
        cap: int | None,
        pictures: tuple[Picture, ...],
    ):
        self.reply: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self.message = message
        self.session = session
        self.kit = kit
        self.pattern = pattern
        self.log = log
        self.root = kit.team.orchestrator
        self.settings = kit.team.deck.settings
        self.session_exists = past is not None and past.lines is None
        self.recollection = Recollection() if past is None else past.recollection
        if in_play is not None:
            agents = tuple(in_play)
            self.recollection = Recollection(in_play=agents, routed=agents or None)
        self.memory = Memory(
            kit.store, session, past, self.settings, message, self.recollection, history
        )
        locale = locale_of(session.locale)
        dynamic = _dynamic(
            date=kit.today,
            user_id=session.principal.user_id,
            locale=session.locale,
            location=session.location,
            persona=session.persona,
            in_play=self.recollection.in_play,
            unanswered=self.recollection.unanswered,
        )
        span = log.new_span()
        self.state = TurnState(
            log=log,
            agents=kit.team.agents,
            dynamic=dynamic,
            cap=self.settings.cap if cap is None else cap,
            message=message,
            cards=kit.team.cards,
            pattern=pattern.name,
            settings=self.settings,
            memory=self.memory,
            progress=Progress(
                log, self.settings, kit.team.statuses, span, locale.statuses.values_by_field
            ),
            locale=locale,
            jobs=kit.team.jobs,
            player=kit.cassette,
            pictures=pictures,
            own_guards=kit.team.deck.code.guards,
        )
        inherited = _inherited(
            principal=session.principal,
            episode_id=session.id,
            locale=session.locale,
            location=session.location,
        )
        # Only what the orchestrator's own card says limits a turn: a deck's defaults are for sub-agents.
        ledger = Ledger(self.root.card.id)
        ledger.reserve(self.root.card.policy)
        self.ctx = RunContext(
            self.state, inherited, ledger, span, callees=self.root.callees, path=self.root.card.id
        )

    async def run(self) -> None:
        """Runs the turn to its end."""
        self.begun = True
        status: Status
        error: str | None = None
        silence = langsmith_hears(False) if self.kit.team.silences_langsmith else _NO_CONTEXT
        with silence:
            try:
                await self._begin()
                try:
                    # The stop came before the task ran, or while the store kept it waiting: there was nothing to cancel
                    # yet.
                    if self.stop_requested:
                        raise asyncio.CancelledError
                    async with self.kit.team.admission or _NO_CONTEXT:
                        status, text, error = await self._answer()
                    if self.state.pictures or self.memory.may_ask_again:
                        text = with_mentions(text, self.ctx, self.kit.team.deck.models)
                except Paused:
                    status = "paused"
                    text = " ".join(self.state.acts.questions().values())
                except (Interrupted, asyncio.CancelledError) as stop:
                    status = "interrupted" if isinstance(stop, Interrupted) else "cancelled"
                    text = stopped(self.ctx, status)
                    error = str(stop) or None
                if self._ending_task is None:
                    await self._finish(status, text, error)
            # a fault of the kit itself, for whoever awaits the turn
            except Exception as problem:
                self.reply.set_exception(problem)
            finally:
                if self._ending_task is None:
                    self._close()

    def stop(self) -> bool:
        """Notes that its user stops the turn, which then is cancelled."""
        self.state.was_stopped = True
        return True

    def leave(self, status: Status) -> None:
        """Ends the turn without work that was stopped and does not end; what its agents answered counts."""
        if not self.at_work:
            return
        logger.error(
            "turn %s: its work was stopped, does not end and is left behind", self.log.turn_id
        )
        # when it goes on, it calls no further model
        self.ctx.ledger.close()
        self.state.record(unrecorded(self.state))
        if self.pattern.is_plan and not self.state.was_stopped:
            status = "interrupted"
        if status == "deadline":
            text = rescued(self.ctx)
        else:
            text = stopped(self.ctx, status)
        self.at_work = False
        ending = self._finish(status, text, "its work does not end")
        self._ending_task = asyncio.create_task(ending)
        self._ending_task.add_done_callback(lambda _: self._close())

    def _close(self) -> None:
        self.log.close()
        # does nothing where there is one
        self.reply.cancel()

    async def _begin(self) -> None:
        started_at = self.started_at or time.time()
        keep_log = partial(self.kit.store.keep_log, self.log.turn_id, self.log.events)
        self.state.keep = partial(asyncio.to_thread, keep_log)
        self.injection = current_injection()
        faults: tuple[str, ...] = ()
        if self.injection is not None:
            faults = tuple(map(str, self.injection.faults))
        self.ctx.emit(_THINKING)
        self.ctx.emit(
            _turn_started(
                message=self.message,
                session_id=self.session.id,
                principal=self.session.principal,
                pattern=self.state.pattern,
                started_at=started_at,
                deck=self.kit.team.deck.name,
                cohort=self.root.prompt.cohort,
                cap=self.state.cap,
                model=self.root.model.spec.key,
                faults=faults,
                pictures=tuple(map(attrgetter("ref"), self.state.pictures)),
                versions=self.kit.team.versions,
                recollection=self.recollection,
            )
        )
        record = _turn_record(
            id=self.log.turn_id,
            session_id=self.session.id,
            tenant_id=self.session.principal.tenant_id,
            user_id=self.session.principal.user_id,
            message=self.message,
            pattern=self.state.pattern,
            model=self.root.model.spec.key,
            started_at=started_at,
            cap=self.state.cap,
        )
        if self.log.secrets:
            record = without_secrets(record, self.log.secrets)
        self._record = record
        self.state.alarm = Alarm(record, self.kit)
        # The store refuses a session that a stranger opened in the meantime.
        new_session = None if self.session_exists else self.session
        await self._keep(
            partial(self.kit.store.begin_turn, record, new_session, self.log.events, wait=False)
        )

    async def _keep(self, write: Callable[[], None], *refusals: type[Exception]) -> None:
        """Writes to the store. One that is busy delays this turn alone; one that fails does not
        cost the user the answer."""
        self.unsaved = None
        waited = 0.0
        while True:
            try:
                await self.kit.store.write_together(write)
                return
            except asyncio.CancelledError:
                # The user has stopped the turn, which is written all the same.
                self.stop_requested = True
                continue
            except StoreBusy as error:
                problem = error
            except (StoreError, *refusals) as error:
                problem = error
                waited = PATIENCE
            if waited >= PATIENCE:
                self.unsaved = str(problem)
                logger.error("turn %s is not saved: %s", self.log.turn_id, problem)
                return
            # Another writer is mostly done in milliseconds; one that holds the file long is asked less and less
            # often.
            pause = max(0.01, min(0.2, waited / 4))
            try:
                await asyncio.sleep(pause)
            except asyncio.CancelledError:
                self.stop_requested = True
            waited += pause

    def _fixed_answer(self) -> tuple[Status, str] | None:
        """Returns what some messages are answered with before any model is asked; None for any other message."""
        fixed = answer_to_danger(self.message, self.kit.team.dangers, self.ctx)
        if fixed is not None:
            return "ok", fixed
        fixed = decline(self.message, self.state.locale.sentences)
        if fixed is not None:
            return "failed", fixed
        if self.session_exists:
            fixed = still_asked(self.message, self.ctx)
        fixed = fixed or help_with(self.message, self.ctx)
        if fixed is not None:
            return "ok", fixed
        if self.root.model.spec.provider == OFFLINE.provider:
            fixed = unread(self.message, self.session.locale[:2], self.state.locale)
            if fixed is not None:
                return "failed", fixed
        return None

    async def _answer(self) -> tuple[Status, str, str | None]:
        fixed = self._fixed_answer()
        if fixed is not None:
            return *fixed, None
        self.memory.tidy(self.ctx)
        agent = self.root.card.id
        if self.memory.may_ask_again or self.memory.has_owed:
            self.state.message = self.memory.message_meant(self.ctx)
        call = _call(call_id="root", agent=agent, query=self.state.message, fields={})
        self.at_work = True
        seconds = self.settings.turn_budget_ms / 1000
        leave = partial(self.leave, "deadline")
        try:
            outcome = await run_to_outcome(self.pattern.run, call, self.ctx, seconds, leave)
        finally:
            for put_away in self.ctx.ledger.at_end:
                put_away()
        # a system of its own says itself what it spent
        if not self.ctx.ledger.touched:
            self.ctx.ledger.charge(outcome.usage)
        if isinstance(outcome, Answer):
            text = narration(outcome.text)[0] if MARK in outcome.text else outcome.text
            if not self.state.outcomes and only_refuses(prose(text)):
                # Nobody was asked, and the orchestrator says that it cannot help: nothing is answered.
                return "failed", text, "refusal: the model says that it cannot help with this"
            if not self.state.outcomes and self.state.was_cut_off and self.root.callees:
                # It broke off before it asked anybody.
                return "failed", text, "insufficient: the reply was cut off before its end"
            return "ok", text, None
        error = f"{outcome.reason}: {outcome.detail}"
        if outcome.reason == "refusal" and outcome.suggestion and not self.state.outcomes:
            # The orchestrator declined before it asked anybody: the user reads in which words.
            return "failed", outcome.suggestion, error
        is_late = outcome.reason == "timeout" and self.state.out_of_time
        return "deadline" if is_late else "failed", rescued(self.ctx), error

    def _say(self, text: str) -> str:
        """Makes the page's answer the final text, whatever was streamed before it was known; returns the preamble."""
        page = transcript(self.log.events)
        invoked = bool(self.state.calls)
        is_shown = page.answer.strip() == text.strip()
        if not invoked and page.lead.strip() == text:
            is_shown = True
        if not is_shown:
            first = page.answer_seq
            if first is None:
                self.ctx.emit(Text(channel="answer", text=text))
            else:
                self.ctx.emit(TextReplaced(from_seq=first, text=text))
        return page.lead if invoked else ""

    async def _finish(self, status: Status, text: str, error: str | None) -> None:
        """Makes the text the page's, writes the turn to the store and hands over its reply."""
        self.at_work = False
        is_without_call = status in ("failed", "deadline") and not self.state.calls
        if is_without_call and transcript(self.log.events).lead.strip() != text.strip():
            # The preamble says that somebody is being asked, and its model failed before it asked anybody.
            # What declines in so many words was read already, and stays.
            self.ctx.replace_lead("")
        preamble = self._say(text)
        if self.memory.tidying is not None:
            is_stopped = status == "cancelled" or self._ending_task is not None
            await self.memory.settle(0.0 if is_stopped else LATE)
        routing = routing_of(self.state, self.pattern)
        # A pattern may end in order though nobody answered, and break off with answers in hand.
        status = cast("Status", final_status(status, turn_parts(routing)))
        usage = self.ctx.ledger.settle()
        self.ctx.emit(_routing(decision=routing))
        self.ctx.emit(_turn_usage(usage=usage))
        end = _completed(status=status, text=text, error=error or self.unsaved)
        last = self.log.seal(end, self.ctx.span_id)
        events = [*self.log.events, last]
        row = record_of(self._record, events, routing, usage, status, text)
        lines = dialogue(row, self.state)
        outcomes = list(self.state.outcomes)
        secrets = self.log.secrets
        if secrets:
            row = without_secrets(row, secrets)
            lines = [without_secrets(line, secrets) for line in lines]
            outcomes = [without_secrets(outcome, secrets) for outcome in outcomes]
            routing = without_secrets(routing, secrets)
            preamble = without_secret_words(preamble, secrets)
        notes = self.memory.remember(row, self.ctx)
        # a turn whose beginning the store refused may have been the session's first
        new_session = None if self.unsaved is None or self.session_exists else self.session
        write = partial(self.kit.store.end_turn, row, events, lines, notes, new_session, wait=False)
        await self._keep(write, SessionError)
        if self.unsaved is not None:
            # Until the store has its end, every other process takes the turn for one that runs.
            self.kit.store.write_later(self.log.turn_id, write)
            end = end.replace(error=error or self.unsaved, saved=False)
            last = last.replace(body=end)
        else:
            self.kit.store.at_work.pop(self.log.turn_id, None)
        self.log.close(last)
        if SUMMARY_NOTE in notes and self.kit.recorder.keep_summary is not None:
            self.kit.recorder.keep_summary(row, notes[SUMMARY_NOTE])
        if self.kit.recorder.sinks:
            self.kit.recorder.turn_ended(row, self.log.events)
        reply = Reply(
            turn_id=self.log.turn_id,
            status=status,
            text=row.text,
            preamble=preamble,
            outcomes=tuple(outcomes),
            routing=routing,
            usage=usage,
            events=tuple(self.log.events),
            saved=self.unsaved is None,
        )
        self.reply.set_result(reply)


_new_decision = builder(RoutingDecision)
_new_line = builder(RoutedOutcome)


def routing_of(turn: TurnState, pattern: Pattern) -> RoutingDecision:
    """Returns the routing decision of a turn: who was asked, how the cap behaved, what became of each part."""
    unanswered = turn.unanswered()
    coverage = turn.coverage()
    behavior: CapBehavior = "within"
    # A model that reports more than its message holds has left nothing out.
    if turn.over_cap or (turn.reported > turn.cap and coverage.left_out.count > 0):
        behavior = "over"
    elif turn.cap_used and turn.cap_used == turn.cap:
        behavior = "at"
    invoked: dict[str, None] = {}
    lines: list[RoutedOutcome] = []
    for outcome in turn.outcomes:
        # An agent that only handed the conversation on has done no work for the user.
        if isinstance(outcome, Failure) or outcome.text or not outcome.hands_to:
            invoked[outcome.agent] = None
        reason = None
        mended = False
        result = "success"
        if isinstance(outcome, Failure):
            result = "data_error" if outcome.axis == "data" else "failure"
            reason = outcome.reason
            # another call of the same request was answered
            mended = outcome not in unanswered.failures
        elif outcome.is_handover:
            result = "handed_on"
        elif outcome.is_partial:
            result = "partial"
        lines.append(
            _new_line(
                agent=outcome.agent,
                call_id=outcome.call_id,
                result=result,
                reason=reason,
                mended=mended,
            )
        )
    return _new_decision(
        pattern=turn.pattern,
        invoked=tuple(invoked),
        intent_count=turn.emitted,
        later_calls=turn.emitted_later,
        reported_intents=turn.reported or turn.emitted,
        cap=turn.cap,
        cap_behavior=behavior,
        dropped=tuple(map(attrgetter("agent"), unanswered.over_cap)),
        refused=tuple(map(attrgetter("agent"), turn.set_aside)),
        left_out=coverage.left_out,
        parts=coverage.parts,
        outcomes=tuple(lines),
        rounds=turn.rounds,
        has_failsafe=pattern.has_failsafe,
    )


def record_of(
    begun: TurnRecord,
    events: Sequence[Event],
    routing: RoutingDecision,
    usage: Usage,
    status: TurnStatus,
    text: str,
) -> TurnRecord:
    """Returns the stored row of a finished turn; one that was interrupted has no seconds, and no figure counts it."""
    first_text_at = None
    for event in events:
        if type(event.body) is Text:
            first_text_at = event.at
            break
    failed: list[str] = []
    for outcome in routing.outcomes:
        # What was stopped, or waits for its user, has not failed.
        is_lost = outcome.result in ("failure", "data_error") and not outcome.is_stopped
        if is_lost and not outcome.mended:
            failed.append(outcome.agent)
    return begun.replace(
        seconds=None if status == "interrupted" else events[-1].at,
        status=status,
        text=text,
        invoked=routing.invoked,
        failed=tuple(failed),
        intent_count=routing.intent_count,
        cap_behavior=routing.cap_behavior,
        ttft=first_text_at,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        model_calls=usage.model_calls,
        tool_calls=usage.tool_calls,
        cost=usage.cost,
        measures=measure(events),
    )
