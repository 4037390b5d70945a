"""A host whose turns and plans come from a service over HTTP; only the words of the deck are read here."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any, TypeVar

from pydantic import SecretStr

from kit.core.context import Principal, Session
from kit.core.documents.document import WAITING, AgentEvent, Plan
from kit.core.errors import SettingsError
from kit.core.fault import Fault
from kit.core.picture import Picture
from kit.core.record import SessionRecall
from kit.metrics.plan_health import PlanHealth
from kit.patterns.plan_execute import PLAN
from kit.patterns.resume import Answers
from kit.planning.plan import OVER
from kit.service.bodies import TurnSummary
from kit.service.client import EventStream, ServiceClient, ServiceError, open_http
from kit.service.remote_turn import RemoteTurn
from kit.settings import Settings
from kit.ui.shared.host import Host
from kit.ui.shared.live_turn import LiveTurn
from kit.ui.shared.turn_fold import advance, interrupt
from kit.ui.shared.turn_view import TurnView

T = TypeVar("T")
MOST_TURNS = 100
"""Turns of a session that a service lists at most."""


class RemoteHost(Host):
    """The face of a Host before a service. Its own kit has an empty store in memory, and runs no turn."""

    is_remote = True

    def __init__(self, settings: Settings):
        if settings.visitor_dollars_a_day is not None:
            raise SettingsError(
                "KIT_VISITOR_DOLLARS_A_DAY is read from the store, which the service of KIT_SERVICE_URL does not "
                "give away: unset one of the two"
            )
        self._url = settings.service_url or ""
        key = settings.variables.get("SKILL_SERVICE_KEY")
        self._key = SecretStr(key) if key else None
        self._http = open_http(self._url)
        self._views: dict[str, TurnView] = {}
        super().__init__(settings.with_(store=":memory:", model="offline"))

    def _ask(
        self, principal: Principal, ask: Callable[[ServiceClient], Coroutine[Any, Any, T]]
    ) -> T:
        """Asks the service on behalf of a principal, and waits for what it says. Raises ServiceError."""

        return self.wait(ask(self._client(principal)))

    def _client(self, principal: Principal) -> ServiceClient:
        return ServiceClient(self._url, principal, self._key, self._http)

    async def _end_turns(self) -> None:
        """Looks away from what runs: it goes on at the service."""
        for pump in self._pumps:
            pump.cancel()
        await asyncio.gather(*self._pumps, return_exceptions=True)
        await self._http.aclose()

    def words_of(self, model: str | None) -> str:
        return self._url

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
        if faults or pattern or cap or model or images or past:
            raise SettingsError(
                "the service of KIT_SERVICE_URL chooses pattern, model and limits itself, and takes no pictures: "
                "ask without them, or unset it"
            )
        client = self._client(session.principal)
        return self._begin(client, client.stream(session.id, message), session, message)

    def go_on(self, name: str, principal: Principal, answers: Answers = None) -> None:
        client = self._client(principal)
        plan = self.plan(PLAN + name.removeprefix(PLAN), principal)
        if plan is not None:
            name = plan.plan_id
            session_id = plan.session_id
            message = plan.original_task
        else:
            view = self._views[name]
            session_id = view.session_id
            message = view.question
        # Who lets it go on without an answer has said no to nothing.
        stream = client.resume(name)
        if answers or answers is False:
            stream = client.answer(name, answers)
        self._begin(client, stream, Session(id=session_id, principal=principal), message)

    def _begin(
        self, client: ServiceClient, stream: EventStream, session: Session, message: str
    ) -> str:
        """Has the service begin a turn, follows it whoever looks, and returns its id."""
        begin = partial(RemoteTurn.begin, client, stream)
        return self.wait(self._start(begin, session, message))

    async def _join_summary(self, summary: TurnSummary, session: Session) -> None:
        """Follows a turn that runs at the service already."""
        client = self._client(session.principal)
        turn = await RemoteTurn.begin(client, client.follow(summary.turn_id))
        self._hold(LiveTurn(turn, session, summary.message, summary.started_at))

    def views(self, session: Session, limit: int = 10) -> list[TurnView]:
        """Returns the newest turns of a session, oldest first; one that runs is followed from here on."""
        summaries = self._ask(
            session.principal, lambda client: client.turns(session.id, min(limit, MOST_TURNS))
        )
        views: list[TurnView] = []
        for summary in reversed(summaries):
            if summary.status == "running" and not self.runs(summary.turn_id):
                self.wait(self._join_summary(summary, session))
            live = self._live.get(summary.turn_id)
            if live is not None and not live.done.is_set():
                views.append(live.view())
            else:
                views.append(self._view_of(summary, session.principal))
        return views

    def _view_of(self, summary: TurnSummary, principal: Principal) -> TurnView:
        view = self._views.get(summary.turn_id)
        if view is not None and view.status == summary.status and view.seconds == summary.seconds:
            return view

        async def read(client: ServiceClient) -> TurnView:
            events = [event async for event in client.follow(summary.turn_id)]
            view = TurnView(
                turn_id=summary.turn_id,
                session_id=summary.session_id,
                question=summary.message,
                started_at=summary.started_at,
                final=summary.response or None,
            )
            view = advance(view, events)
            return interrupt(view) if view.running else view

        view = self._ask(principal, read)
        self._views[summary.turn_id] = view
        return view

    def newest(self, session: Session) -> str:
        summaries = self._ask(session.principal, lambda client: client.turns(session.id, 1))
        return summaries[0].turn_id if summaries else ""

    def plans(self, principal: Principal, most: int) -> list[Plan]:
        async def read(client: ServiceClient) -> list[Plan]:
            summaries = await client.plans(most)
            return await asyncio.gather(*(client.plan(plan.plan_id) for plan in summaries))

        return self._ask(principal, read)

    def plan(self, plan_id: str, principal: Principal) -> Plan | None:
        try:
            return self._ask(principal, lambda client: client.plan(plan_id))
        except ServiceError as error:
            if error.status == 404:
                return None
            raise

    def plan_events(self, principal: Principal, plan_id: str) -> list[AgentEvent]:
        return list(self._ask(principal, lambda client: client.trace(plan_id)))

    def health(self, principal: Principal) -> PlanHealth | None:
        """Returns nothing: how plans do is counted from the whole log."""
        return None

    def outputs(self, plan: Plan) -> dict[int, Any]:
        return self._ask(plan.owner, lambda client: client.outputs(plan.plan_id))

    def models_of(self, plans: Sequence[Plan]) -> list[str]:
        async def read(client: ServiceClient) -> list[str]:
            sessions = dict.fromkeys(plan.session_id for plan in plans)
            listed = await asyncio.gather(*(client.turns(name, MOST_TURNS) for name in sessions))
            ids = {plan.plan_id.removeprefix(PLAN) for plan in plans}
            return [turn.model for turns in listed for turn in turns if turn.turn_id in ids]

        if not plans:
            return []
        return self._ask(plans[0].owner, read)

    def holds(self, plan: Plan) -> bool:
        """Whether a plan is at work, as far as the service says.

        One whose process died counts until a worker takes it up.
        """
        return plan.holder is not None and plan.status not in (*OVER, *WAITING)

    def stop_plan(self, plan: Plan) -> None:
        self._ask(plan.owner, lambda client: client.cancel(plan.plan_id))
