"""run_turn(): a message in, events out, a reply at the end. One turn is one task; it ends in order however it ends."""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from types import CoroutineType
from typing import Any, cast

from uuid_utils import uuid7

from kit.compose.locale import locale_of
from kit.core.bodies.guard import GuardActed
from kit.core.bodies.speech import Text, TextReplaced
from kit.core.bodies.turn import Completed, Routing, Thinking, TurnStarted, TurnUsage
from kit.core.context import DynamicContext, InheritedContext, Session
from kit.core.display.turn_parts import final_status, turn_parts
from kit.core.errors import SessionError, StoreBusy, StoreError
from kit.core.fault_injection import planned_faults
from kit.core.language.small_talk import takes_rest
from kit.core.outcome import AgentCall, Answer
from kit.core.picture import Picture, check_count, mark_pictures
from kit.core.record import Message, SessionRecall, TurnRecord
from kit.core.secret import without_secret_words, without_secrets
from kit.core.transcript import transcript
from kit.core.value import builder
from kit.models.direct_call import langsmith_hears
from kit.runtime.acts.pause import Paused, Resumption
from kit.runtime.answer.acknowledge import rescued
from kit.runtime.answer.help import help_with
from kit.runtime.answer.owed import mention_pictures, stopped
from kit.runtime.budget import root_ledger
from kit.runtime.context import RunContext, TurnState
from kit.runtime.dispatch import run_to_outcome, unrecorded
from kit.runtime.guards.danger import answer_to_danger
from kit.runtime.guards.echo import said_last
from kit.runtime.handle import Reply, Status, Turn
from kit.runtime.host import Host, alarm
from kit.runtime.log import TurnLog, wake
from kit.runtime.memory import Memory
from kit.runtime.message import clean, decline
from kit.runtime.pattern import Pattern
from kit.runtime.rollup import dialogue, record_of, routing_of
from kit.runtime.speech.narration import MARK, narration
from kit.runtime.speech.progress import Progress

log = logging.getLogger("kit.turn")
_inherited = builder(InheritedContext)
_dynamic = builder(DynamicContext)
_turn_started = builder(TurnStarted)
_turn_record = builder(TurnRecord)
_completed = builder(Completed)
_routing = builder(Routing)
_turn_usage = builder(TurnUsage)
_call = builder(AgentCall)
_THINKING = Thinking()
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
) -> Turn:
    """Starts a turn on the running loop and returns its handle at once.

    `pattern` defaults to the kit's; `cap` to the deck's. `history` and `in_play`, or a `past` with
    its lines, stand in for what the store remembers of the session, for callers that bring a
    conversation of their own. `images` come with the message. `resumes`: the stored turn of that id
    goes on. Raises SessionError when the session is another principal's: nobody reads a stranger's
    history; PictureError when there are too many images.
    """
    pictures = check_count(images)
    names = f"{session.id}{session.principal.tenant_id}{session.principal.user_id}"
    if clean(names) != names.strip():
        raise SessionError(
            "ids of sessions, tenants and users hold neither control characters nor halves of a pair"
        )
    past = past or kit.store.recall(session.id)
    if past is not None and past.session.principal != session.principal:
        raise SessionError(
            f"session {session.id!r} belongs to someone else; start a new one under another id"
        )
    clock = asyncio.get_running_loop().time
    statuses = kit.team.deck.settings.vocabulary
    turn_log = TurnLog(turn_id or uuid7().hex, clock, statuses, kit.team.secrets)
    runner = _Runner(
        message,
        pictures,
        session,
        kit,
        pattern or kit.pattern,
        turn_log,
        past,
        cap,
        history,
        in_play,
    )
    if resumes is not None:
        runner.started_at, runner.state.acts = resumes.started_at, resumes.acts
    return Turn(runner)


class _Runner:
    started_at: float | None = None  # of a turn that goes on

    def __init__(
        self,
        message: str,
        pictures: tuple[Picture, ...],
        session: Session,
        kit: Host,
        pattern: Pattern,
        turn_log: TurnLog,
        past: SessionRecall | None,
        cap: int | None,
        history: Sequence[Message] | None,
        in_play: Sequence[str] | None,
    ):
        self.reply: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self.waiting: list[asyncio.Future[None]] = []
        self.begun = self.stop_requested = self.at_work = False
        self._rest: asyncio.Task[None] | None = None
        """Ends a turn whose work was left behind."""
        self.unsaved: str | None = None
        self.message = mark_pictures(clean(message), pictures)
        self.session = session
        self.kit = kit
        self.pattern = pattern
        self.log = turn_log
        self.root = kit.team.orchestrator
        self.settings = kit.team.deck.settings
        self.session_exists = past is not None and past.lines is None
        last, routed, due = (
            (past.in_play, past.routed, past.unanswered) if past is not None else ((), None, ())
        )
        if in_play is not None:
            last = tuple(in_play)
            routed = tuple(in_play) or None
            due = ()
        self.memory = Memory(kit.store, session, past, self.settings, self.message, routed, history)
        who = session.principal
        here = session.location
        locale = locale_of(session.locale)
        user_id = who.user_id
        tag = session.locale
        wish = session.persona
        dynamic = _dynamic(
            date=kit.today,
            user_id=user_id,
            locale=tag,
            location=here,
            persona=wish,
            in_play=last,
            unanswered=due,
        )
        span = turn_log.new_span()
        self.state = TurnState(
            log=turn_log,
            agents=kit.team.agents,
            dynamic=dynamic,
            cap=self.settings.cap if cap is None else cap,
            message=self.message,
            cards=kit.team.cards,
            pattern=pattern.name,
            settings=self.settings,
            memory=self.memory,
            progress=Progress(turn_log, self.settings, span, locale.statuses.values_by_field),
            locale=locale,
            jobs=kit.team.jobs,
            player=kit.cassette,
            pictures=pictures,
        )
        inherited = _inherited(
            principal=who, episode_id=session.id, locale=session.locale, location=here
        )
        callees = frozenset(card.id for card in self.root.sub_cards.values())
        ledger = root_ledger(self.root.card)
        self.ctx = RunContext(
            self.state, inherited, ledger, span, callees=callees, path=self.root.card.id
        )

    def run(self) -> "CoroutineType[Any, Any, None]":
        """Returns what runs the turn to its end, for a task."""
        # A coroutine around it would be entered and left at every step of the turn.
        if self.kit.team.silences_langsmith:
            return self._run_silenced()
        return self._run()

    async def _run_silenced(self) -> None:
        with langsmith_hears(False):
            await self._run()

    async def _run(self) -> None:
        self.begun = True
        status: Status
        error: str | None = None
        try:
            await self._begin()
            try:
                if self.stop_requested:
                    raise asyncio.CancelledError
                async with self.kit.team.admission or nullcontext():
                    status, text, error = await self._answer()
                if self.state.pictures:
                    text = mention_pictures(text, self.ctx, self.kit.team.deck.models)
            except Paused:
                status = "paused"
                text = " ".join(one.question for one in self.state.acts.questions.values())
            except asyncio.CancelledError:
                status = "cancelled"
                text = stopped(self.ctx, transcript(self.log.events).answer)
            if self._rest is None:
                await self._end(status, text, error)
        except Exception as problem:  # a fault of the kit itself, for whoever awaits the turn
            self.reply.set_exception(problem)
        finally:
            if self._rest is None:
                self._close()

    def leave(self, status: Status) -> None:
        """Ends the turn without work that was stopped and does not end; what its agents answered counts."""
        if self.at_work:
            log.error(
                "turn %s: its work was stopped, does not end and is left behind", self.log.turn_id
            )
            self.ctx.ledger.close()  # when it goes on, it calls no further model
            self.state.record(unrecorded(self.state))
            if status == "cancelled":
                text = stopped(self.ctx, transcript(self.log.events).answer)
            else:
                text = rescued(self.ctx)
            self.at_work, self._rest = (
                False,
                asyncio.create_task(self._end(status, text, "its work does not end")),
            )
            self._rest.add_done_callback(lambda _: self._close())

    def _close(self) -> None:
        self.log.close()
        self.reply.cancel()  # does nothing where there is one
        wake(self.waiting)

    async def _end(self, status: Status, text: str, error: str | None) -> None:
        self.at_work = False
        if status in ("failed", "deadline") and not self.state.calls:
            self.ctx.replace_lead("")  # a preamble whose model failed before it asked anybody
        preamble = self._say(text)
        await self.memory.settle(0.0 if status == "cancelled" or self._rest else LATE)
        self.reply.set_result(await self._finish(self._record, status, text, error, preamble))

    async def _begin(self) -> None:
        started_at = self.started_at or time.time()
        self.state.keep = partial(self.kit.store.keep_log, self.log.turn_id, self.log.events)
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
                faults=tuple(map(str, planned_faults())),
                pictures=tuple(picture.ref for picture in self.state.pictures),
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
        self.state.alarm = alarm(record, self.kit)
        # refused when a stranger opened it in the meantime
        if self.session_exists:
            new = None
        else:
            new = self.session
        await self._keep(
            partial(self.kit.store.begin_turn, record, new, self.log.events, wait=False)
        )

    async def _keep(self, write: Callable[[], None], *refusals: type[Exception]) -> None:
        """Writes to the store. One that is busy delays this turn alone; one that fails does not
        cost the user the answer."""
        self.unsaved = None
        waited = 0.0
        while True:
            try:
                write()
                return
            except StoreBusy as error:
                problem = error
            except (StoreError, *refusals) as error:
                problem = error
                waited = PATIENCE
            if waited >= PATIENCE:
                self.unsaved = str(problem)
                log.error("turn %s is not saved: %s", self.log.turn_id, problem)
                return
            pause = max(0.01, min(0.2, waited / 4))
            try:
                await asyncio.sleep(pause)
            except asyncio.CancelledError:
                self.stop_requested = True
            waited += pause

    async def _answer(self) -> tuple[Status, str, str | None]:
        fixed = answer_to_danger(self.message, self.kit.team.dangers, self.ctx)
        if fixed is None:
            fixed = decline(self.message, self.state.locale.sentences)
        if fixed is None:
            fixed = help_with(self.message, self.ctx)
        if fixed is not None:
            return "ok", fixed, None
        self.memory.tidy(self.ctx)
        self._take_what_was_left_out()
        call = _call(call_id="root", agent=self.root.card.id, query=self.state.message, fields={})
        self.at_work, seconds, leave = (
            True,
            self.settings.turn_budget_ms / 1000,
            partial(self.leave, "deadline"),
        )
        try:
            outcome = await run_to_outcome(self.pattern.run, call, self.ctx, seconds, leave)
        finally:
            for put_away in self.ctx.ledger.at_end:
                put_away()
        if not self.ctx.ledger.touched:  # a system of its own says itself what it spent
            self.ctx.ledger.charge(outcome.usage)
        if isinstance(outcome, Answer):
            return "ok", narration(outcome.text)[0] if MARK in outcome.text else outcome.text, None
        if outcome.reason == "refusal" and outcome.suggestion and not self.state.outcomes:
            # The orchestrator declined before it asked anybody: the user reads in which words.
            return "failed", outcome.suggestion, f"{outcome.reason}: {outcome.detail}"
        late = outcome.reason == "timeout" and self.state.out_of_time
        return (
            "deadline" if late else "failed",
            rescued(self.ctx),
            f"{outcome.reason}: {outcome.detail}",
        )

    def _take_what_was_left_out(self) -> None:
        """Has "go on" stand for the parts that the last answer left out and offered to take next."""
        owed = self.memory.owed
        if not owed or not takes_rest(self.message, said_last(self.ctx)):
            return
        self.state.message = ", and ".join(owed)
        self.ctx.emit(
            GuardActed(
                guard="left_out",
                action="reworded",
                agent=self.root.card.id,
                reason=f"the message takes up what the last answer left out: {self.state.message}",
            )
        )

    def _say(self, text: str) -> str:
        """Makes the page's answer the final text, whatever was streamed before it was known; returns the preamble."""
        page = transcript(self.log.events)
        invoked = bool(self.state.calls)
        if (invoked or page.lead.strip() != text) and page.answer.strip() != text.strip():
            began = page.answer_seq
            self.ctx.emit(
                Text(channel="answer", text=text)
                if began is None
                else TextReplaced(from_seq=began, text=text)
            )
        if invoked:
            return page.lead
        return ""

    async def _finish(
        self, record: TurnRecord, status: Status, text: str, error: str | None, preamble: str
    ) -> Reply:
        routing = routing_of(self.state, self.pattern)
        status = cast("Status", final_status(status, turn_parts(routing)))
        usage = self.ctx.ledger.settle()
        self.ctx.emit(_routing(decision=routing))
        self.ctx.emit(_turn_usage(usage=usage))
        end = _completed(status=status, text=text, error=error or self.unsaved)
        last = self.log.seal(end, self.ctx.span_id)
        events = [*self.log.events, last]
        row = record_of(record, events, routing, usage, status, text)
        lines = dialogue(row, self.state)
        outcomes = list(self.state.outcomes)
        secrets = self.log.secrets
        if secrets:
            row = without_secrets(row, secrets)
            lines = [without_secrets(line, secrets) for line in lines]
            outcomes = [without_secrets(outcome, secrets) for outcome in outcomes]
            routing = without_secrets(routing, secrets)
            preamble = without_secret_words(preamble, secrets)
        notes = self.memory.remember(row, self.ctx, self.kit.team.agents)
        if self.unsaved is None or self.session_exists:
            new = None
        else:
            new = self.session
        await self._keep(
            partial(self.kit.store.end_turn, row, events, lines, notes, new, wait=False),
            SessionError,
        )
        self.log.close(
            last
            if self.unsaved is None
            else last.replace(body=end.replace(error=error or self.unsaved, saved=False))
        )
        self.kit.recorder.turn_ended(row, self.log.events)
        return Reply(
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
