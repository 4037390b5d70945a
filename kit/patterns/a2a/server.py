"""Serves the sub-agents of a team over A2A: each at its own path, with its card, its budget and its
memory of each caller."""

import asyncio
import re
from collections import OrderedDict
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import partial
from typing import Any

from a2a.server.agent_execution import (
    AgentExecutor,
    RequestContext,
    SimpleRequestContextBuilder,
)
from a2a.server.context import ServerCallContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import (
    AgentCapabilities,
    AgentExtension,
    AgentInterface,
    AgentSkill,
    Message,
    Part,
    Role,
    SendMessageRequest,
    Task,
    TaskState,
    TaskStatus,
)
from a2a.types import AgentCard as PeerCard
from a2a.utils.errors import UnsupportedOperationError
from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.middleware import Middleware

from kit.compose.locale import locale_of
from kit.compose.parts import DeckSettings, StatusPolicy
from kit.core.card import AgentCard
from kit.core.context import ID, DynamicContext, InheritedContext, Principal, turn_id_of
from kit.core.event import Event
from kit.core.limits import BodyLimit
from kit.core.outcome import AgentCall, Answer, Outcome, tell
from kit.core.record import Message as Line
from kit.core.status import OWN
from kit.patterns.a2a.exchange import (
    ASKER,
    CALLER,
    KEY,
    PRINCIPAL,
    Caller,
    Request,
    report_metadata,
    trace_id_of,
)
from kit.runtime.act_ledger import ActLedger, Paused
from kit.runtime.budget import Ledger
from kit.runtime.context import Agent, RunContext, SessionMemory, TurnState
from kit.runtime.dispatch import dispatch
from kit.runtime.log import TurnLog
from kit.runtime.speech.progress import Progress
from kit.runtime.team import Team

CONTEXTS = 1000
"""Conversations a server remembers, and turns; the one not heard of for longest is forgotten first."""
TASKS = 256
"""Finished tasks a server still knows, for a caller that asks again."""
LINES = 40
WORKING = TaskStatus(state=TaskState.TASK_STATE_WORKING)
SETTINGS = DeckSettings(
    orchestrator="caller", required_blocks=(), status_policy=StatusPolicy(quiet_ms=None)
)
"""Silence is told by the caller, who hears all of its agents."""
Speaker = tuple[str, str, str, str]
"""Tenant, user, conversation, agent."""
ONE_MESSAGE = (
    "A task here is one message: send the next one without the id of a task, in the same context."
)
ASKER_WORDS = (
    "Says for whom a message asks: `tenant_id` and `user_id` in its metadata, and both in the header "
    f"`{PRINCIPAL}`, as `tenant/user` with what is no letter, digit, `_`, `.`, `-` or `~` percent-encoded. "
    "A message that does not say it is rejected."
)
NO_PRINCIPAL = "This agent answers on behalf of a signed-in user only."


@dataclass
class Memory:
    """What each agent said before, per tenant, user and conversation: a caller can read its own and nobody else's.
    And what was done in each turn."""

    contexts: OrderedDict[Speaker, list[Line]] = field(
        default_factory=OrderedDict[Speaker, list[Line]]
    )
    acts: OrderedDict[str, ActLedger] = field(default_factory=OrderedDict[str, ActLedger])
    """By the id that a turn has here."""

    def acts_in(self, turn_id: str) -> ActLedger:
        """The ledger of a turn, which may ask again after its own process has died."""
        ledger = self.acts.setdefault(turn_id, ActLedger())
        self.acts.move_to_end(turn_id)
        while len(self.acts) > CONTEXTS:
            self.acts.popitem(last=False)
        return ledger

    def remember(self, key: Speaker, turn_id: str, query: str, text: str) -> None:
        lines = self.contexts.setdefault(key, [])
        lines.append(Line(turn_id=turn_id, role="user", text=query, agent=key[-1]))
        lines.append(Line(turn_id=turn_id, role="assistant", text=text, agent=key[-1]))
        # A caller that never ends its conversation must not fill the memory of the server.
        del lines[:-LINES]
        self.contexts.move_to_end(key)
        while len(self.contexts) > CONTEXTS:
            self.contexts.popitem(last=False)


class RecentTasks(InMemoryTaskStore):
    """Tasks in memory, the newest ones only; each caller has its own, by the principal it calls for."""

    def __init__(self) -> None:
        super().__init__(owner_resolver=_caller)
        self._order: OrderedDict[str, ServerCallContext] = OrderedDict()

    async def save(self, task: Task, context: ServerCallContext) -> None:
        await super().save(task, context)
        self._order.setdefault(task.id, context)
        while len(self._order) > TASKS:
            await self.delete(*self._order.popitem(last=False))


class OneMessage(SimpleRequestContextBuilder):
    """Refuses a message to a task that has one: its caller would hear how the first one ended, and of nothing
    that is done for the second."""

    async def build(
        self,
        context: ServerCallContext,
        params: SendMessageRequest | None = None,
        task_id: str | None = None,
        context_id: str | None = None,
        task: Task | None = None,
    ) -> RequestContext:
        if task_id:
            raise UnsupportedOperationError(ONE_MESSAGE)
        return await super().build(context, params, task_id, context_id, task)


@dataclass(frozen=True)
class Executor(AgentExecutor):
    """Runs one agent for whoever calls: dispatched as at home, so that its whole contract holds here too."""

    agent: Agent
    memory: Memory
    statuses: Container[str] = frozenset(OWN)
    """The vocabulary of the agent's deck."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Work begins at once; what happens is told in updates, the outcome with the last one."""
        task_id = context.task_id or ""
        context_id = context.context_id or ""
        updater = TaskUpdater(event_queue, task_id, context_id)
        request = _read(context)
        if request is None:
            await event_queue.enqueue_event(Task(id=task_id, context_id=context_id, status=WORKING))
            await updater.reject(_message(NO_PRINCIPAL))
            return
        clock = asyncio.get_running_loop().time
        headers: Mapping[str, str] = context.call_context.state.get("headers", {})
        caller = CALLER.get()
        if caller is None:
            # Whoever calls chooses its trace id: the acts of two users would have the same keys.
            trace = trace_id_of(headers.get("traceparent", ""))
            turn_id = turn_id_of(request.inherited.principal, trace)
        else:
            turn_id = caller.turn.log.turn_id
        log = TurnLog(turn_id, clock, self.statuses)
        work = asyncio.create_task(self._work(request, context_id, log, caller))
        try:
            await asyncio.sleep(0)  # so that what happens first travels with the task
            begun = list(log.events)
            await event_queue.enqueue_event(
                Task(
                    id=task_id,
                    context_id=context_id,
                    status=WORKING,
                    metadata=report_metadata(begun),
                )
            )
            last_events = await _tell(log, len(begun), updater)
            outcome = await work
        finally:
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)
        state = TaskState.TASK_STATE_FAILED
        if isinstance(outcome, Answer):
            state = TaskState.TASK_STATE_COMPLETED
        await updater.update_status(
            state, _message(tell(outcome)), metadata=report_metadata(last_events, outcome)
        )

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        await TaskUpdater(event_queue, context.task_id or "", context.context_id or "").cancel()

    async def _work(
        self, request: Request, context_id: str, log: TurnLog, caller: Caller | None
    ) -> Outcome:
        inherited = request.inherited
        agent = self.agent.card.id
        key = (inherited.principal.tenant_id, inherited.principal.user_id, context_id, agent)
        state = TurnState(
            log=log,
            agents={agent: self.agent},
            dynamic=request.dynamic,
            cap=1,
            pattern="a2a",
            locale=locale_of(inherited.locale),
            settings=SETTINGS,
            memory=SessionMemory(lambda _: self.memory.contexts.get(key, ())),
            progress=Progress(log, SETTINGS, OWN),
        )
        if caller is None:
            state.acts = self.memory.acts_in(log.turn_id)
        else:
            # Acts are the turn's, wherever its agents are: what is settled about one is known and stored there,
            # and whoever is asked to try again must know what was asked. So are what no agent of it looks up again, and
            # what none of its events shows.
            state.message = caller.turn.message
            state.memory = caller.turn.memory
            state.acts = caller.turn.acts
            state.barred = caller.turn.barred
            state.private = caller.turn.private
            state.keep = partial(caller.store, log.events)
        ctx = RunContext(
            state,
            inherited,
            Ledger("caller"),
            log.new_span(),
            callees=frozenset({agent}),
            path=request.caller,
        )
        call = request.call.replace(agent=agent)
        try:
            outcome = await dispatch(call, ctx, request.place)
        except Paused:
            detail = "a tool of it asks the user first, which no peer can"
            outcome = call.failed("not_allowed", detail)
            own_path = f"{ctx.path}/{request.place}.{agent}"
            for entry in state.acts.entries.values():
                # Nobody will answer it.
                if entry.state == "asked" and entry.path.startswith(own_path):
                    entry.question = None
        finally:
            log.close()
        if caller is None and isinstance(outcome, Answer):
            self.memory.remember(key, log.turn_id, call.query, outcome.text)
        return outcome


async def _tell(log: TurnLog, since: int, updater: TaskUpdater) -> list[Event]:
    """Sends events as they come, those of one moment together; returns the last ones, which go with the outcome."""
    batch: list[Event] = []
    async for event in log.follow(since):
        batch.append(event)
        if event.seq == len(log.events) - 1 and not log.closed:
            await updater.update_status(
                TaskState.TASK_STATE_WORKING, metadata=report_metadata(batch)
            )
            batch = []
    return batch


def peer_card(card: AgentCard, url: str) -> PeerCard:
    """The A2A card of an agent: its description is the kit card's, to the letter."""
    return PeerCard(
        name=card.id,
        description=card.description,
        version=card.version,
        supported_interfaces=[
            AgentInterface(url=url, protocol_binding="JSONRPC", protocol_version="1.0")
        ],
        capabilities=AgentCapabilities(
            streaming=True,
            extensions=[AgentExtension(uri=ASKER, description=ASKER_WORDS, required=True)],
        ),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[
            AgentSkill(id=card.id, name=card.label, description=card.description, tags=[card.role])
        ],
    )


@dataclass(frozen=True)
class Peers:
    """The application, and what must be closed with it."""

    app: Starlette
    handlers: Sequence[DefaultRequestHandler]

    async def aclose(self) -> None:
        """Ends every task that still runs."""
        for handler in self.handlers:
            await handler.aclose()


def serve_team(team: Team, url: str) -> Peers:
    """An ASGI application with every sub-agent of a team at `<url>/<id>`, its card under
    `/.well-known/agent-card.json`."""
    memory = Memory()
    handlers: list[DefaultRequestHandler] = []
    routes: list[Any] = []
    for card in team.orchestrator.sub_cards.values():
        peer = peer_card(card, f"{url}/{card.id}")
        handler = DefaultRequestHandler(
            Executor(team.agents[card.id], memory, team.deck.settings.vocabulary),
            RecentTasks(),
            peer,
            request_context_builder=OneMessage(),
        )
        handlers.append(handler)
        routes += create_jsonrpc_routes(handler, f"/{card.id}")
        routes += create_agent_card_routes(peer, card_url=f"/{card.id}/.well-known/agent-card.json")
    # A message has to be parsed before anybody knows who sends it, and nothing else goes on meanwhile.
    return Peers(Starlette(routes=routes, middleware=[Middleware(BodyLimit)]), handlers)


def _caller(context: ServerCallContext) -> str:
    headers: Mapping[str, str] = context.state.get("headers", {})
    return headers.get(PRINCIPAL, "")


def _read(context: RequestContext) -> Request | None:
    """What the kit on the other side sent, or any client; None for a caller that named nobody it asks for, by a name
    that the API takes, or another in its header."""
    message = context.message
    if message is None:
        return None
    try:
        if KEY in message.metadata:
            request = Request.model_validate_json(str(message.metadata[KEY]))
        else:
            request = _plain_request(context, message)
    except ValidationError:
        return None
    principal = request.inherited.principal
    # The header is what tasks are shown by: a caller could read another one's with a second name.
    if _caller(context.call_context) != str(principal):
        return None
    # Who is in this process has been let in by its kit.
    is_known = CALLER.get() is not None
    if is_known or all(re.fullmatch(ID, name) for name in (principal.tenant_id, principal.user_id)):
        return request
    return None


def _plain_request(context: RequestContext, message: Message) -> Request:
    """The request of a client that is no pattern of the kit: its text, and for whom it asks. Raises ValidationError
    where it does not say that."""
    names: dict[str, Any] = {}
    for name in Principal.model_fields:
        if name in message.metadata:
            names[name] = message.metadata[name]
    principal = Principal.model_validate(names)
    locale = SETTINGS.visitor.locale
    return Request(
        call=AgentCall(call_id=message.message_id, agent="", query=context.get_user_input()),
        inherited=InheritedContext(
            principal=principal, episode_id=context.context_id or "", locale=locale
        ),
        dynamic=DynamicContext(
            date=date.today().isoformat(), user_id=principal.user_id, locale=locale
        ),
        caller="",
        place="0.0",
    )


def _message(text: str) -> Message:
    return Message(message_id="reply", role=Role.ROLE_AGENT, parts=[Part(text=text)])
