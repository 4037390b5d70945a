"""The app's one event loop, in a daemon thread: turns run here, and outlive every rerun of the page that asked."""

import asyncio
import logging
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any, TypeVar

from kit.compose.page import Person, Renderer
from kit.conformance.recorded_turn import PlainTurn, Recording, play_plain
from kit.core.context import OPERATOR, Principal, Session
from kit.core.documents.document import AgentEvent, Plan
from kit.core.errors import FaultError, ResumeError, StoreBusy, StoreError
from kit.core.event import INTERNAL
from kit.core.fault import Fault, Kind, parse
from kit.core.picture import Picture, mark_pictures
from kit.core.record import SessionRecall, TurnRecord
from kit.metrics.plan_health import PlanHealth, count_health, plan_health
from kit.metrics.watchdog import Silence, Watchdog, note_silence, silences
from kit.patterns import modes_of
from kit.patterns.fork import fork_turn
from kit.patterns.plan_execute import PLAN
from kit.patterns.resume import Answers, last_turn_of
from kit.planning.record import cancel, outputs_of
from kit.runtime.handle import Turn
from kit.service.remote_turn import RemoteTurn
from kit.settings import Settings
from kit.stores.documents.protocol import Documents, EventFilter
from kit.ui.shared.allowance import Allowance
from kit.ui.shared.deck_page import load_people, load_renderers
from kit.ui.shared.live_turn import Batch, LiveTurn
from kit.ui.shared.pictures import PictureCache
from kit.ui.shared.turn_fold import advance, interrupt, stored_view
from kit.ui.shared.turn_view import TurnView
from kit.ui.shared.wording import is_simulated, use_names
from kit.wire import Kit, open_kit

log = logging.getLogger("kit.host")
T = TypeVar("T")
MOST_FINISHED = 64
"""Finished turns held in memory; older ones are read from the store."""
MOST_EVENTS = 20_000
"""Events that are read of a plan."""


class Host:
    """A Kit on its own loop and thread. Every method may be called from any thread.

    Opening raises what opening the Kit raised.
    """

    is_remote = False
    """Whether turns come from a service: then nothing here has a store to look into."""

    def __init__(self, settings: Settings | None = None):
        self.people: Mapping[Principal, Person] = {}
        """Whom the page can ask as, by the deck."""
        self.renderers: Mapping[str, Renderer] = {}
        """Component type -> what draws it, by the deck."""
        self._live: dict[str, LiveTurn] = {}
        self._restored_views: dict[str, TurnView] = {}
        self._lock = threading.Lock()
        self._pumps: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._closing = asyncio.Event()
        opening: Future[Kit] = Future()
        self._thread = threading.Thread(
            target=self._run, args=(settings, opening), name="kit loop", daemon=True
        )
        self._thread.start()
        self.kit = opening.result()
        use_names(self.kit.deck.cards.values())
        self._allowance = Allowance(self.kit.settings, self.kit.store, self.kit.shared_turns)
        self._kits: dict[str, Kit] = {}
        self.pictures = PictureCache()

    def close(self) -> None:
        """Stops running turns, closes the Kit and ends the thread."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._closing.set)
            self._thread.join(timeout=10)

    def on(self, model: str | None) -> Kit:
        """Returns the kit with every agent on one model; as it was opened when none is named.
        Raises UnknownId or BindError."""
        if not model:
            return self.kit
        # Binding takes a moment, and two visitors may choose the same model at once.
        with self._lock:
            if model not in self._kits:
                self._kits[model] = self.kit.on(model)
            return self._kits[model]

    def words_of(self, model: str | None) -> str:
        """Returns what answers, in words fit for a badge."""
        name = self.on(model).model
        if is_simulated(name):
            name += ", simulated"
        return name

    def session(self, session_id: str, principal: Principal | None = None) -> Session | None:
        """Returns the session of that id, new or stored, for `who` or the settings' own; None when
        it is somebody else's."""
        default = self.kit.session(session_id)
        principal = principal or default.principal
        session = self.kit.session(session_id, principal.tenant_id, principal.user_id)
        stored_session = self.kit.store.session(session.key)
        if stored_session is not None and stored_session.principal != principal:
            return None
        if principal == default.principal:
            return default
        if principal in self.people:
            location = self.people[principal].location
            session = session.model_copy(update={"location": location})
        return session

    def prepare(self, patterns: Iterable[str], model: str | None = None) -> None:
        """Binds what these patterns run with: where several turns start at once none waits for the team of another.

        Raises BindError where the model cannot do it.
        """

        async def bind() -> None:
            stages = self.on(model).stages
            modes = modes_of(self.kit.deck)
            for pattern in patterns:
                await stages.prepare(modes[pattern])

        self.wait(bind(), timeout=60)

    def start(
        self,
        message: str,
        session: Session,
        faults: Sequence[str | Fault] = (),
        *,
        pattern: str | None = None,
        cap: int | None = None,
        model: str | None = None,
        images: Sequence[Picture] = (),
        past: SessionRecall | None = None,
    ) -> str:
        """Starts a turn and returns its id at once; the arguments, and what it raises, are those of `Kit.ask`."""
        ask = partial(self.on(model).ask, message, session, pattern, cap, faults, images, past=past)
        return self._play(ask, session, mark_pictures(message, images), images)

    def fork(
        self,
        turn: TurnRecord,
        span_id: str,
        faults: Sequence[str] | None = None,
        **changes: str | None,
    ) -> str:
        """Forks a turn and returns the id of the new one; the changes, and what it raises, are those of `fork_turn`."""
        past = self.kit.recall_before(turn)
        session = past.session
        fork = partial(
            fork_turn,
            self.kit,
            session.principal,
            turn.id,
            span_id,
            past=past,
            faults=faults,
            **changes,
        )
        return self._play(fork, session, turn.message)

    def plain_turns(self, recording: Recording, model: str) -> list[PlainTurn]:
        """Plays a plain loop over a stored turn's recording, once as it is first written and once with what
        asyncio offers; `model` words the answer. Raises UnknownId for a model that is not there any more."""
        lead = self.kit.team.orchestrator
        if model != lead.model.spec.key:
            lead = self.on(model).team.orchestrator
        composer = lead.composer or lead.model
        patience = self.kit.deck.settings.turn_budget_ms / 1000

        async def play() -> list[PlainTurn]:
            turns: list[PlainTurn] = []
            for best in (False, True):
                turns.append(await play_plain(recording, composer, best=best, seconds=patience))
            return turns

        return self.wait(play(), timeout=3 * patience)

    def go_on(self, name: str, principal: Principal, answers: Answers = None) -> None:
        """Lets a turn, or a plan by its id, go on that waits or was interrupted; what it raises is that of
        `Kit.resume`."""
        turn = self.kit.store.turn(name.removeprefix(PLAN), principal)
        if turn is None:
            raise ResumeError("this is not stored yet, so it cannot go on: try again in a moment")
        resume = partial(self.kit.resume, name, answers, who=principal)
        self._play(resume, self._session_of(turn), turn.message, asked_at=turn.started_at)

    def plans(self, principal: Principal, most: int) -> list[Plan]:
        """Returns a principal's plans, the newest first."""
        return self.documents(lambda stores: stores.plans.of(principal, most))

    def plan(self, plan_id: str, principal: Principal) -> Plan | None:
        return self.documents(lambda stores: stores.plans.read(principal, plan_id))

    def plan_events(self, principal: Principal, plan_id: str) -> list[AgentEvent]:
        """Returns what happened in a plan, in order."""
        by = EventFilter(tenant_id=principal.tenant_id, plan_id=plan_id)
        return self.documents(lambda stores: stores.events.query(by, MOST_EVENTS))

    def health(self, principal: Principal) -> PlanHealth | None:
        """Returns how the plans of a principal do, all of them; None where nobody here can say."""
        return plan_health(
            self.documents(lambda stores: count_health(stores, principal, since=0.0))
        )

    def outputs(self, plan: Plan) -> dict[int, Any]:
        """Returns step -> its output, of the steps that are done."""
        return self.documents(lambda stores: outputs_of(plan, stores.memory))

    def models_of(self, plans: Sequence[Plan]) -> list[str]:
        """Returns the models that plans were made with, as far as their turns are stored."""
        models: list[str] = []
        for plan in plans:
            turn = self.kit.store.turn(plan.plan_id.removeprefix(PLAN), plan.owner)
            if turn is not None:
                models.append(turn.model)
        return models

    def plan_answer(self, plan: Plan) -> str:
        """Returns what its user read of a plan that has ended, in the last turn that worked on it."""
        turn_id = plan.plan_id.removeprefix(PLAN)
        turn = self.kit.store.turn(turn_id, plan.owner)
        if turn is not None:
            turn_id = last_turn_of(self.kit, turn, plan.plan_id)[0].id
        view = self.view(turn_id, plan.owner)
        if view is None:
            return ""
        return view.answer

    def holds(self, plan: Plan) -> bool:
        """Whether a living process, this one or another, works on a plan."""
        turn = self.kit.store.turn(plan.holder or "", plan.owner)
        return turn is not None and turn.status == "running" and not self._died(turn)

    def stop_plan(self, plan: Plan) -> None:
        """Stops a plan, wherever it is at work."""
        if plan.holder and self.runs(plan.holder):
            self.cancel(plan.holder)
        else:
            self.documents(lambda stores: cancel(stores.plans, plan.plan_id, plan.owner))

    def _session_of(self, turn: TurnRecord) -> Session:
        session = self.kit.store.session(turn.session_key)
        return session or Session(id=turn.session_id, principal=turn.principal)

    def wait(self, work: Coroutine[Any, Any, T], timeout: float = 30) -> T:
        """Runs work on the kit's loop, waits for it, and returns what it returns, or raises what it raises.

        Raises TimeoutError where it takes longer than `timeout` seconds; it goes on."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout)

    def documents(self, ask: Callable[[Documents], Awaitable[T]]) -> T:
        """Asks the stores of documents, on the kit's loop, and waits for what they say. Raises StoreError."""

        async def answer() -> T:
            return await ask(self.kit.store.open_documents())

        return self.wait(answer())

    def runs(self, turn_id: str) -> bool:
        """Whether a turn runs in this process."""
        live = self._live.get(turn_id)
        return live is not None and not live.done.is_set()

    def answering(self, session: Session) -> bool:
        """Whether a turn of this session runs in this process."""
        return any(not turn.done.is_set() for turn in self._own_turns(session).values())

    def follow(self, turn_id: str, from_seq: int = 0, timeout: float = 0.2) -> Batch:
        """Returns the events from `from_seq` on, as soon as there are any; none after `timeout` seconds without one.

        A turn this process does not run is over: its events are the store's.
        """
        live = self._live.get(turn_id)
        if live is None:
            # its id comes of a view, which is given to the turn's own principal alone
            stored = self.kit.store.events(turn_id, OPERATOR)
            visible = [event for event in stored if event.kind not in INTERNAL]
            return Batch(tuple(visible[from_seq:]), done=True)
        return live.batch(from_seq, timeout)

    def advance(self, view: TurnView, timeout: float = 0.2) -> TurnView:
        """Returns the view of a turn after what has happened since, as soon as that is anything; unchanged after
        `timeout` seconds without."""
        batch = self.follow(view.turn_id, len(view.events), timeout)
        view = advance(view, batch.events)
        if batch.done and view.running:
            return interrupt(view)
        return view

    def cancel(self, turn_id: str) -> None:
        """Stops a turn; one that is over or unknown is left alone."""
        live = self._live.get(turn_id)
        if live is not None and not live.done.is_set():
            self._loop.call_soon_threadsafe(live.turn.cancel)

    def break_agent(self, turn_id: str, agent: str, kind: Kind) -> None:
        """Makes a sub-agent of a running turn fail from now on: in the middle of its call, or, of
        `foreign_principal`, by the next reply of its service.

        The page lets operators do it, and nobody else. Raises UnknownId for an agent that the deck
        does not have, FaultError for the orchestrator, for a kind that a sub-agent cannot have, and
        for a turn that is over or runs elsewhere.
        """
        team = self.kit.team
        if agent == team.root:
            raise FaultError(f"{agent!r} leads the turn: break one of its sub-agents")
        fault = parse(f"{agent}={kind}", team.agents, team.root)
        live = self._live.get(turn_id)
        if live is None or not isinstance(live.turn, Turn):
            raise FaultError(
                "nothing of this turn can be made to fail: it is over, or runs elsewhere"
            )

        async def add_fault(turn: Turn) -> None:
            turn.break_agent(fault)

        self.wait(add_fault(live.turn))

    def views(self, session: Session, limit: int = 10) -> list[TurnView]:
        """Returns the newest turns of a session, oldest first: stored ones, and this process' own as they stand now.

        A turn that another living process runs is followed, and can be stopped from here.
        """
        live_turns, turns = self._turns(session, limit)
        views: list[TurnView] = []
        for turn in turns:
            if turn.id not in live_turns:
                views.append(self._restored(turn, limit))
        statuses = {turn.id: turn.status for turn in turns}
        for live in live_turns.values():
            view = live.view()
            if not view.saved and statuses.get(view.turn_id) == view.status:
                # The store has taken it since.
                view = view.model_copy(update={"saved": True})
            views.append(view)
        return sorted(views, key=lambda view: view.started_at)[-limit:]

    def view(self, turn_id: str, principal: Principal) -> TurnView | None:
        """Returns a turn as it stands now, of this process or stored; None when there is none of
        that id, or it is another's."""
        live = self._live.get(turn_id)
        if live is not None and live.session.principal == principal:
            return live.view()
        # The store gives nobody the turn of somebody else.
        turn = self.kit.store.turn(turn_id, principal)
        if turn is None:
            return None
        return self._restored(turn)

    def newest(self, session: Session) -> str:
        """Returns the id of a session's newest turn, of this process or another one; empty when it has none."""
        live_turns, turns = self._turns(session, limit=1)
        times = {turn.id: turn.started_at for turn in turns}
        for turn_id, live in live_turns.items():
            times[turn_id] = live.asked_at
        return max(times, key=times.__getitem__, default="")

    def _turns(
        self, session: Session, limit: int
    ) -> tuple[dict[str, LiveTurn], Sequence[TurnRecord]]:
        principal = session.principal
        turns = self.kit.store.turns(
            session_id=session.id,
            tenant_id=principal.tenant_id,
            user_id=principal.user_id,
            limit=limit,
        )
        return self._own_turns(session), turns

    def _own_turns(self, session: Session) -> dict[str, LiveTurn]:
        """Returns the turns of a session that this process has run or runs, by id."""
        with self._lock:
            live_turns: dict[str, LiveTurn] = {}
            for key, turn in self._live.items():
                # Once a turn of another process has ended, the store says how.
                if turn.elsewhere and turn.done.is_set():
                    continue
                if (turn.session.id, turn.session.principal) == (session.id, session.principal):
                    live_turns[key] = turn
            return live_turns

    def _restored(self, turn: TurnRecord, capacity: int = MOST_FINISHED) -> TurnView:
        """Returns a stored turn; the newest looked at are held, as many at least as one page shows at `most`."""
        with self._lock:
            view = self._restored_views.pop(turn.id, None)
        # A turn that was paused or interrupted may have gone on since.
        if view is None or (view.status, view.seconds) != (turn.status, turn.seconds):
            view = stored_view(turn, self.kit.store.events(turn.id, turn.principal))
        if view.running:
            if self._died(turn):
                return interrupt(view)
            return self.wait(self._join(turn)).view()
        with self._lock:
            self._restored_views[turn.id] = view
            for oldest in list(self._restored_views)[: -max(MOST_FINISHED, capacity)]:
                del self._restored_views[oldest]
        return view

    async def _join(self, turn: TurnRecord) -> LiveTurn:
        """Follows a turn that another process runs."""
        if turn.id not in self._live:
            session = self._session_of(turn)
            joined_turn = self.kit.join(turn.id, turn.principal)
            live = LiveTurn(joined_turn, session, turn.message, turn.started_at, elsewhere=True)
            # Once it has ended, the store says how; it may go on later, anywhere.
            self._hold(live).add_done_callback(lambda _: self._live.pop(turn.id, None))
        return self._live[turn.id]

    def _died(self, turn: TurnRecord) -> bool:
        """Whether the process that ran a turn is gone; the store then calls the turn interrupted."""
        # Only a look at its process tells a slow turn from a dead one, and that look is the store's.
        try:
            self.kit.store.mark_interrupted()
        except StoreBusy:
            # The next look will tell.
            return False
        now = self.kit.store.turn(turn.id, turn.principal)
        return now is not None and now.status == "interrupted"

    def _run(self, settings: Settings | None, opening: "Future[Kit]") -> None:
        # The kit opens, works and closes here: its clients and stores belong to the loop that made them.
        asyncio.set_event_loop(self._loop)
        serving = self._loop.create_task(self._serve(settings, opening))
        self._loop.run_until_complete(asyncio.wait([serving]))
        self._loop.close()
        error = serving.exception()
        if error and not opening.done():
            opening.set_exception(error)
        elif error:
            log.error("the kit did not close: %s", error)

    async def _serve(self, settings: Settings | None, opening: "Future[Kit]") -> None:
        # It brings the bench: whoever imports this module need not wait for it.
        from kit.bench.shadow import shadow_judges

        async with open_kit(settings, faults=True) as kit, shadow_judges(kit):
            self.people = load_people(kit.deck, kit.settings)
            self.renderers = load_renderers(kit.deck)
            watchdog = Watchdog(self._loop, partial(self._on_silence, kit))
            watchdog.start()
            opening.set_result(kit)
            await self._closing.wait()
            watchdog.stop()
            await self._end_turns()

    async def _end_turns(self) -> None:
        # A plan whose user did not stop it keeps its state, and a worker may take it up.
        for live in self._live.values():
            if isinstance(live.turn, Turn):
                live.turn.interrupt()
        await asyncio.gather(*self._pumps, return_exceptions=True)

    def _on_silence(self, kit: Kit, silence: Silence) -> None:
        """Logs a silence of the loop and keeps it for the page Metrics; called in the watchdog's thread."""
        where = " ".join(silence.stack[-1:]) or "unknown"
        log.warning("the loop was silent for %.2f s: %s", silence.seconds, where)
        tenant_id = kit.session("").principal.tenant_id

        async def note() -> None:
            try:
                await note_silence(kit.store.open_documents().events, tenant_id, silence)
            except StoreError as error:
                log.warning("the silence could not be stored: %s", error)

        asyncio.run_coroutine_threadsafe(note(), self._loop)

    def silences(self, since: float) -> list[Silence]:
        """Returns the silences of the loop since a moment, the oldest first. Raises StoreError."""
        tenant_id = self.kit.session("").principal.tenant_id
        return self.documents(lambda documents: silences(documents.events, tenant_id, since))

    def _play(
        self,
        ask: Callable[[], Turn],
        session: Session,
        message: str,
        images: Sequence[Picture] = (),
        asked_at: float | None = None,
    ) -> str:
        async def begin() -> Turn:
            turn = ask()
            self.pictures.keep(turn.id, images)
            return turn

        self._allowance.check_spending(session.principal)
        return self.wait(self._start(begin, session, message, asked_at))

    async def _start(
        self,
        begin: Callable[[], Awaitable[Turn | RemoteTurn]],
        session: Session,
        message: str,
        asked_at: float | None = None,
    ) -> str:
        """Starts a turn and returns its id; from here on it needs nobody."""
        asked_at = asked_at or time.time()
        async with self._allowance.slot(session.principal) as end:
            turn = await begin()
            pump = self._hold(LiveTurn(turn, session, message, asked_at))
            pump.add_done_callback(end)
        return turn.id

    def _hold(self, live: LiveTurn) -> "asyncio.Task[None]":
        """Carries the events of a turn to whoever looks, and keeps the turn for a while after its end."""
        with self._lock:
            self._live[live.turn.id] = live
            finished = [key for key, other in self._live.items() if other.done.is_set()]
            for oldest in finished[:-MOST_FINISHED]:
                del self._live[oldest]
        # The loop holds a task weakly: without the set it could be collected in mid-turn.
        pump = self._loop.create_task(live.pump())
        self._pumps.add(pump)
        pump.add_done_callback(self._pumps.discard)
        return pump
