"""The composition root: settings in, a running Kit out. Nothing below reads globals or the environment."""

import asyncio
import datetime
import uuid
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import (
    AsyncExitStack,
    asynccontextmanager,
    closing,
    nullcontext,
)
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from pydantic import SecretStr

from kit.compose.canary import new_for
from kit.compose.deck import Deck, open_deck
from kit.core.context import Principal, Session
from kit.core.errors import CodeError, FaultError
from kit.core.extra import require
from kit.core.fault import Fault, parse_all
from kit.core.fault_injection import current_injection, inject_faults
from kit.core.picture import Picture
from kit.core.record import LINES, SessionRecall, TurnRecord
from kit.models.access import NO_KEY, OPENAI
from kit.patterns import pattern_of
from kit.patterns.agents_as_tools import MEDIATED
from kit.patterns.elsewhere import join_turn
from kit.patterns.fork import fork_turn
from kit.patterns.resume import Answers, resume_turn
from kit.patterns.stages import NO_FLAGS, Flags, Stages
from kit.runtime.elsewhere.broadcast import telling
from kit.runtime.handle import Turns
from kit.runtime.job import SUMMARY
from kit.runtime.memory import most_lines
from kit.runtime.pattern import Pattern
from kit.runtime.recording.cassette import Cassette
from kit.runtime.team import Models, Team
from kit.runtime.turn import Turn, run_turn
from kit.settings import Settings
from kit.sinks.recorder import Recorder, Sink
from kit.stores.bus.bus import Bus, LocalBus
from kit.stores.opening import open_store
from kit.stores.recall import asked_once_more, recall_before
from kit.stores.turn_store import TurnStore
from kit.team_binder import TeamBinder, admission_of, choose_models
from kit.tools.deck_tools import given_tools
from kit.tools.embedder import Embedder, WordVectors
from kit.tools.loading import load_reference
from kit.tools.recall import SessionSummaries
from kit.tools.skills import chosen_service
from kit.tools.task_memory import TaskMemory
from kit.tools.tool import Toolbox
from kit.tools.tool_factory import ToolSetup

if TYPE_CHECKING:
    from kit.sinks.opik import OpikSink
    from kit.stores.bus.shared_turns import SharedTurns


@dataclass(frozen=True)
class Kit:
    """Everything a turn needs, opened once and closed together. One Kit belongs to one event loop."""

    settings: Settings
    team: Team
    store: TurnStore
    recorder: Recorder
    pattern: Pattern
    today: str
    stages: Stages
    stages_on: Callable[[Models | None], Stages]
    """Binds the same deck, tools and services to other models."""
    tools: Toolbox
    """What agents were bound to."""
    cassette: Cassette | None = None
    faults: bool = False
    """Whether a turn may be told to go wrong."""
    turns: Turns = field(default_factory=Turns)
    """Those that run now; `await kit.turns.drain(10)` ends them in order."""
    bus: Bus = field(default_factory=LocalBus)
    """What its tools say while they work (docs/stores.md), and where it is shared, its turns."""
    elsewhere: Turns = field(default_factory=Turns)
    """Turns of other processes that are followed here."""
    shared_turns: "SharedTurns | None" = None
    """Where all processes of a deployment count their turns; None where this one is alone."""
    embedder: Embedder = field(default_factory=WordVectors)
    """By whose vectors memories are found."""

    @property
    def deck(self) -> Deck:
        return self.team.deck

    @property
    def model(self) -> str:
        """What answers, in words fit for a badge."""
        spec = self.team.orchestrator.model.spec
        if spec.key == "offline":
            return "offline stand-in"
        return spec.key

    def on(self, model: str) -> "Kit":
        """The same kit with every agent on one model of models.yaml. Raises BindError where there
        is none, or it cannot do it."""
        stages = self.stages_on(model)
        return replace(self, team=stages.team(MEDIATED), stages=stages)

    def session(
        self,
        session_id: str,
        tenant: str | None = None,
        user: str | None = None,
        flags: Mapping[str, bool] | None = None,
    ) -> Session:
        """A session for a principal; that of the settings, else the deck's visitor, when none is named.

        `flags` are those in which it differs from the settings; `ask` binds a team for them once and keeps it.
        """
        settings = self.settings
        visitor = self.deck.settings.visitor
        tenant = tenant or settings.tenant or visitor.tenant_id
        user = user or settings.user or visitor.user_id
        principal = Principal(tenant_id=tenant, user_id=user)
        location = settings.location or visitor.location
        locale = settings.locale or visitor.locale
        return Session(
            id=session_id,
            principal=principal,
            locale=locale,
            location=location,
            flags=dict(flags or {}),
        )

    def ask(
        self,
        message: str,
        session: Session,
        pattern: str | Pattern | None = None,
        cap: int | None = None,
        faults: Sequence[str | Fault] = (),
        images: Sequence[Picture] = (),
        surface: str | None = None,
        past: SessionRecall | None = None,
        key: SecretStr | None = None,
        turn_id: str | None = None,
    ) -> Turn:
        """Starts a turn; `pattern` by name or one's own, else the kit's; `surface` as the deck's
        topologies name it. `images` come with the message; a `past` stands in for what the store
        remembers of the session (`recall_before`).

        Where a plan that was cut off is asked for once more (`asked_once_more`), it goes on with that one: its acts are
        not begun anew.

        `key` opens the skill service for this request, and reaches nothing else (docs/outlets.md). `turn_id`: a new
        one where none is given. `faults` make this one turn go wrong, such as `["rewards=timeout"]`. Raises
        FaultError or UnknownId, which name the nearest agents and kinds, FaultError when the kit was opened without
        faults, PictureError for too many images, UnknownId for a flag that the deck does not declare, SessionError
        for a session of another, ClosedError when closing.
        """
        chosen = self.pattern if pattern is None else pattern_of(pattern, self.deck)
        if self.store.has_souls:
            session = self.store.with_souls(session)
        newer = new_for(self.team.deck, session.key)
        team = self.stages.team(chosen, surface, session.flags, session.tenant_persona, newer)
        if team is self.stages.team(MEDIATED):
            host = self
        else:
            host = replace(self, team=team)
        if faults and not self.faults:
            raise FaultError(
                "this kit was opened without faults: open it with open_kit(faults=True)"
            )
        injected = nullcontext()
        # Whoever set faults around this call keeps them; all others may still break an agent in mid-turn.
        if faults or (self.faults and current_injection() is None):
            injected = inject_faults(parse_all(faults, self.team.agents, self.team.root))
        start = partial(
            run_turn,
            message,
            session,
            host,
            chosen,
            cap=cap,
            images=images,
            past=past,
            turn_id=turn_id,
            key=key,
        )
        if chosen.is_plan and turn_id is None and past is None:
            user = session.principal
            turns = self.store.turns(session.id, user.tenant_id, user.user_id, LINES)
            again = asked_once_more(self.store, turns, message)
            # A plan of another pattern has other agents.
            if again and again.status == "interrupted" and again.pattern == chosen.name:
                start = partial(resume_turn, self, user, again.id, None, session.flags, key)
        with injected:
            return self.turns.begin(start)

    def join(self, turn_id: str, principal: Principal) -> Turn:
        """Returns a handle of a turn that another process runs over the same store (`join_turn`)."""
        return self.elsewhere.begin(partial(join_turn, self, turn_id, principal))

    def recall_before(self, turn: TurnRecord) -> SessionRecall:
        """Returns what a turn's session held before it, and the session to ask it again in: `past =
        kit.recall_before(turn)`, `kit.ask(turn.message, past.session, past=past)`. The trace of the
        new turn names the first (`repeated_turn`)."""
        return recall_before(self.store, turn, self.team.agents, most_lines(self.deck.settings))

    def fork(
        self,
        turn_id: str,
        at: str,
        *,
        model: str | None = None,
        pattern: str | None = None,
        prompt: str | None = None,
        faults: Sequence[str | Fault] | None = None,
        who: Principal | None = None,
    ) -> Turn:
        """Starts a turn that is another one up to a span, and then differs. Raises what `fork_turn`
        raises (docs/traces.md)."""
        return self.turns.begin(
            partial(
                fork_turn,
                self,
                who or self.session("").principal,
                turn_id,
                at,
                model,
                pattern,
                prompt,
                faults=faults,
            )
        )

    def resume(
        self,
        turn_id: str,
        answers: Answers = None,
        *,
        who: Principal | None = None,
        flags: Flags = NO_FLAGS,
        key: SecretStr | None = None,
    ) -> Turn:
        """Lets a turn go on that paused or was interrupted; `flags` are its session's, `key` is that
        of this request. Raises what `resume_turn` raises."""
        principal = who or self.session("").principal
        return self.turns.begin(partial(resume_turn, self, principal, turn_id, answers, flags, key))

    def run_scheduled(
        self, message: str, target: Principal, *, job: str, location: str | None = None
    ) -> Turn:
        """Starts a turn that nobody typed, on behalf of a scheduled job's target user.

        The principal is set here, once, and travels unchanged to every service, which verifies it
        as in a chat. Each run is an episode of its own, `job:<job>:<unique>`: it reads no chat, and
        no chat reads it."""
        return self.ask(
            message,
            Session(id=f"job:{job}:{uuid.uuid4().hex}", principal=target, location=location),
        )


@asynccontextmanager
async def open_kit(
    settings: Settings | None = None,
    *,
    models: Models | None = None,
    tools: object = None,
    deck: Deck | None = None,
    pattern: str | Pattern = "mediated",
    cassette: Cassette | None = None,
    faults: bool = False,
    services: Mapping[str, object] | None = None,
) -> AsyncGenerator[Kit]:
    """Opens a kit on the running loop and closes all of it at the end; turns that still run are
    stopped and stored first.

    Without arguments it is what the environment says: the consumer deck, the tools it names, the
    offline stand-in. `tools` come on top of the deck's own: functions, LangChain tools or tool
    factories, in a sequence or a mapping from id to tool. `faults` lets `ask()` make single turns
    go wrong; without it nothing that could is in place. A `cassette` records every call of a model
    or tool, or answers in their place (docs/bench.md); it is written, or its first misfit raised,
    at the end. `services`: sub-agent -> what answers in its model's place: a function of the
    question, or an agent of another framework (docs/bridges.md). Raises a KitError whose message says
    what to do when anything it needs is missing.
    """
    settings = settings or Settings.read()
    extra_tools = given_tools(tools)
    deck = deck or open_deck(settings.deck, extra_tools.ids, environment=settings.environment)
    settings, models = _settings_and_models(settings, models, cassette, deck)
    async with AsyncExitStack() as stack:
        store = stack.enter_context(closing(_open_store(settings)))
        bus = await stack.enter_async_context(_open_bus(settings))
        shared_turns = await stack.enter_async_context(_open_shared_turns(settings))
        embedder = await stack.enter_async_context(_open_embedder(settings))
        live = cassette is None or cassette.mode != "replay"
        setup = _tool_setup(settings, deck, store, bus, embedder, live=live, faults=faults)
        toolbox = await stack.enter_async_context(deck.tools.plus(extra_tools).open(setup))
        binder = TeamBinder(
            deck=deck,
            tools=toolbox,
            settings=settings,
            services=services or {},
            faults=faults,
            store=store,
            admission=admission_of(deck, shared_turns),
        )
        stages = binder.stages(models)
        turns = Turns()
        team = await _bind_first(stages, deck)
        summaries = _summaries(settings, team, store, bus, embedder)
        # On a thread, for importing Opik takes seconds.
        sinks = await asyncio.to_thread(_sinks, settings)
        recorder = Recorder(sinks, keep_summary=summaries.keep)
        stack.enter_context(closing(recorder))
        stack.push_async_callback(stages.aclose)
        stack.push_async_callback(summaries.drain)
        elsewhere = Turns()
        stack.push_async_callback(elsewhere.drain)
        if settings.redis is not None:
            await stack.enter_async_context(telling(bus, turns))
        stack.push_async_callback(turns.drain)
        yield Kit(
            settings=settings,
            team=team,
            store=store,
            recorder=recorder,
            pattern=pattern_of(pattern, deck),
            today=today_of(settings, deck),
            stages=stages,
            stages_on=binder.stages,
            tools=toolbox,
            cassette=cassette,
            faults=faults,
            turns=turns,
            bus=bus,
            elsewhere=elsewhere,
            embedder=embedder,
            shared_turns=shared_turns,
        )
        await turns.drain()
        if cassette is not None:
            cassette.close()


def _summaries(
    settings: Settings, team: Team, store: TurnStore, bus: Bus, embedder: Embedder
) -> SessionSummaries:
    """What keeps the summary of a session as a memory of it, for as long as turns are kept."""
    days = settings.retention_days
    seconds = None if days is None else days * 86_400

    def open_memory() -> TaskMemory:
        return TaskMemory(store.open_documents(), bus=bus, embedder=embedder, seconds=seconds)

    helper = team.jobs.get(SUMMARY.name)
    # A team without one sums nothing up.
    source = helper.spec.key if helper is not None else ""
    return SessionSummaries(open_memory, source)


async def _bind_first(stages: Stages, deck: Deck) -> Team:
    """Binds the team of the deck, and returns it. Raises BindError for it, and for a card's new version."""
    for card_id in deck.next_cards:
        # One that cannot be bound is no fault of the first turn that gets it.
        stages.team(MEDIATED, newer=frozenset((card_id,)))
    return await stages.prepare(MEDIATED)


def _open_store(settings: Settings) -> TurnStore:
    documents = settings.documents
    if settings.store == ":memory:":
        # What keeps nothing, such as a deck that is checked, leaves nothing elsewhere either.
        documents = None
    return open_store(settings.store, settings.retention_days, documents)


@asynccontextmanager
async def _open_bus(settings: Settings) -> AsyncGenerator[Bus]:
    """Opens the bus of this process, or the one that processes share."""
    if settings.redis is None:
        yield LocalBus()
        return
    require("redis", "coredis")
    from kit.stores.bus.redis_bus import open_redis_bus  # loads its client, which few kits need

    async with open_redis_bus(settings.redis) as bus:
        yield bus


@asynccontextmanager
async def _open_embedder(settings: Settings) -> AsyncGenerator[Embedder]:
    """Opens what makes vectors: the word vectors of the stand-in, or a model behind an endpoint."""
    if settings.embedder is None:
        yield WordVectors()
        return
    # HTTP, which few kits need for this.
    from kit.tools.api_embedder import open_api_embedder

    url = settings.openai_base_url or OPENAI
    key = settings.openai_api_key or NO_KEY
    async with open_api_embedder(settings.embedder, url, key) as embedder:
        yield embedder


@asynccontextmanager
async def _open_shared_turns(settings: Settings) -> AsyncGenerator["SharedTurns | None"]:
    if settings.redis is None:
        yield None
        return
    from kit.stores.bus.shared_turns import open_shared_turns  # loads the client of Redis

    async with open_shared_turns(settings.redis) as turns:
        yield turns


def _tool_setup(
    settings: Settings,
    deck: Deck,
    store: TurnStore,
    bus: Bus,
    embedder: Embedder,
    *,
    live: bool,
    faults: bool,
) -> ToolSetup:
    """What the factories of the deck's tools are given."""
    service = chosen_service(deck.settings.skill_service, settings.skill_service_url)
    return ToolSetup(
        folder=deck.tools.folder,
        settings=settings,
        store=store,
        documents=store.open_documents,
        environment=settings.environment_of(deck.settings.environment),
        server_environment=settings.environment_of(deck.tools.variables(service)),
        skill_service=service,
        live=live,
        faults=faults,
        bus=bus,
        embedder=embedder,
    )


def today_of(settings: Settings, deck: Deck) -> str:
    """The date that prompts carry: KIT_TODAY, else that of the deck's world, else this machine's.
    Raises CodeError, DataError."""
    reference = deck.settings.today
    if settings.today or reference is None:
        return settings.today or datetime.date.today().isoformat()
    read_day = load_reference(reference, deck.tools.folder)
    if not callable(read_day):
        raise CodeError(
            f"today {reference!r} is no function; write one that takes the data folder and the environment"
        )
    return str(
        read_day(settings.data, settings.environment_of(deck.settings.environment))
        or datetime.date.today().isoformat()
    )


def _settings_and_models(
    settings: Settings, models: Models | None, cassette: Cassette | None, deck: Deck
) -> tuple[Settings, Models | None]:
    """Returns those of a recording where there is one; without models, those that the settings choose."""
    if deck.tools.secret_names:
        settings = settings.with_(secret_names=deck.tools.secret_names)
    if cassette is not None:
        return _as_recorded(settings, models, cassette, deck)
    if models is None:
        models = choose_models(settings, deck)
    return settings, models


def _as_recorded(
    settings: Settings, models: Models | None, cassette: Cassette, deck: Deck
) -> tuple[Settings, Models | None]:
    """What the run that was recorded was told: its date, its model; and for a replay keys that are never sent."""
    header = cassette.begin(
        today_of(settings, deck),
        choose_models(settings, deck) if models is None else None,
        settings.secrets,
    )
    if models is None:
        models = settings.model or header.model
    today = settings.today or header.today
    if cassette.mode != "replay":
        return settings.with_(today=today), models
    names = (spec.api_key_env for spec in deck.models.values() if spec.api_key_env)
    variables = {**dict.fromkeys(names, "replayed"), **settings.variables}
    return settings.with_(
        today=today, openai_api_key=settings.openai_api_key or "replayed", variables=variables
    ), models


def open_opik(settings: Settings) -> "OpikSink | None":
    """Opik as these settings name it; None, without importing its SDK, where they name none or it does not answer."""
    if not settings.has_opik:
        return None
    from kit.sinks.opik import open_opik

    return open_opik(
        settings.opik_url, settings.opik_api_key, settings.opik_workspace, settings.opik_project
    )


def _sinks(settings: Settings) -> tuple[Sink, ...]:
    sinks: list[Sink] = []
    if settings.turn_lines:
        from kit.sinks.turn_lines import TurnLines

        sinks.append(TurnLines())
    if settings.otlp_endpoint:
        from kit.sinks.opentelemetry import OtelSink

        sinks.append(OtelSink(endpoint=settings.otlp_endpoint, service=settings.otlp_service))
    if opik := open_opik(settings):
        sinks.append(opik)
    return tuple(sinks)
