"""bind(): a deck becomes a team before any model is called; nothing is looked up afterwards."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from types import MappingProxyType
from typing import Any

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import BaseModel, SecretStr

from kit.bridges.part import Bridge
from kit.bridges.recognise import bridge_of
from kit.compose.deck import Deck
from kit.compose.models import build_model, check_orchestrator, spec_of_model
from kit.compose.prompts import plan_prompt, window_fault
from kit.core.card import AgentCard, Tuning
from kit.core.display.count import many
from kit.core.display.html import notebook_html, table, text
from kit.core.errors import BindError, UnknownId, nearest
from kit.core.language.danger import DangerFinder
from kit.core.model import OFFLINE, ModelSpec, fallback_of
from kit.core.record import CohortPrompt
from kit.core.secret import SHORTEST, without_secrets
from kit.core.status import Term
from kit.models.access import ModelAccess
from kit.models.direct_call import langsmith_is_asked_for
from kit.models.gate import gate_of
from kit.models.response_chain import Chained
from kit.runtime.agents.api_agent import ApiAgent
from kit.runtime.agents.contract import contract_of
from kit.runtime.agents.faulty import faulty_agent, faulty_api_agent
from kit.runtime.agents.llm_agent import LLMAgent
from kit.runtime.bound_model import BoundModel
from kit.runtime.call_tool import new_tools
from kit.runtime.context import Agent
from kit.runtime.handoff import (
    ROUTE,
    ask_tool,
    function_schema,
    in_sequence,
    private_fields,
    route_tool,
)
from kit.runtime.job import JOBS, distilling
from kit.runtime.message_parts import Addressee, Cards, say_enough
from kit.tools.bounds import THREADS, ToolBounds, is_synchronous
from kit.tools.loading import function_tool
from kit.tools.tool import (
    NO_LIMITS,
    LimitedTool,
    Toolbox,
    confirm_fault,
    parameters,
    without_limits,
)

Model = str | BaseChatModel | tuple[BaseChatModel, ModelSpec]
"""A key of models.yaml, or a LangChain chat model, alone or with what is known of it, such as its price."""
Models = Model | Mapping[str, Model]
"""One for all, or a mapping agent id -> model ("*" stands for the rest, `helper` for the small
jobs, `<id>:fallback` and `<id>:composer` for an agent's second models)."""

Places = dict[tuple[str, int], asyncio.Semaphore]
"""(tool id, calls at once) -> the places that its calls share."""
_Schemas = Sequence[dict[str, Any]]
_Private = Mapping[str, frozenset[str]]
_Requests = Mapping[str, tuple[str, ...]]
"""Agent id -> the requests that its card lists; "" for the agent that the model is bound for. A tool that an
orchestrator holds itself stands there with the requests of the card that lists it."""


@dataclass(frozen=True)
class Team:
    """Every agent of a deck, bound. Immutable; serves any number of turns at once."""

    deck: Deck
    agents: Mapping[str, Agent]
    root: str
    """Id of the orchestrator."""
    jobs: Mapping[str, BoundModel] = field(default_factory=dict[str, BoundModel])
    """The helper model, bound to one tool for each small job: name of the job -> model."""
    closing: tuple[Callable[[], Awaitable[None]], ...] = ()
    """What must be closed with the team: connections to agents that are elsewhere."""
    secrets: frozenset[str] = field(default=frozenset(), repr=False)
    """Keys of its models and of the settings: no event holds one."""
    silences_langsmith: bool = False
    """The environment asks LangSmith to trace model calls, and the settings do not allow it."""
    admission: AbstractAsyncContextManager[None] | None = None
    """Lets so many turns in as the deck allows at once."""
    dangers: tuple[DangerFinder, ...] = field(default=(), repr=False)
    """The deck's words for danger to life, in the order in which deck.yaml names their locales."""
    versions: dict[str, str] = field(default_factory=dict[str, str])
    """Card -> its version here, of each card whose new version has a share of the sessions."""

    @cached_property
    def statuses(self) -> Mapping[str, Term]:
        """Every status that may be sent: the deck's and the runtime's own."""
        return self.deck.settings.vocabulary

    @cached_property
    def orchestrator(self) -> LLMAgent:
        agent = self.agents[self.root]
        if not isinstance(agent, LLMAgent):
            raise BindError(f"{self.root!r} must be an LLM agent to orchestrate")
        return agent

    @cached_property
    def cards(self) -> Cards:
        """Whom a message may be for, with what their cards say; of a monolith the agents whose tools it holds.

        Empty where the cards say too little to be compared with a message.
        """
        members = list(self.orchestrator.sub_cards.values())
        if not members:
            members = [agent.card for name, agent in self.agents.items() if name != self.root]
        planning = self.deck.settings.planning
        helpers: set[str] = set()
        # planner and executor take every message: their cards say nothing about what it asks
        if planning is not None:
            helpers = {planning.planner, planning.executor}
        cards = tuple(
            Addressee(card.id, card.description, card.requests)
            for card in members
            if card.id not in helpers
        )
        return cards if say_enough(cards) else ()

    @property
    def prompts(self) -> list[CohortPrompt]:
        """What the requests of its agents begin with, keys aside; of agents that are elsewhere it is not known."""
        agents = [agent for agent in self.agents.values() if isinstance(agent, LLMAgent)]
        prompts: list[CohortPrompt] = []
        for agent in agents:
            prompts.append(
                CohortPrompt(
                    cohort=agent.prompt.cohort,
                    agent=agent.card.id,
                    text=agent.prompt.prefix,
                    tools=tuple(dict(tool) for tool in agent.model.tools),
                )
            )
        if self.secrets:
            return [without_secrets(prompt, self.secrets) for prompt in prompts]
        return prompts

    def _repr_html_(self) -> str:
        """Shows in a notebook who asks whom, on which model and with which tools."""
        subs = self.agents[self.root].card.sub_agents
        order = sorted(self.agents, key=lambda name: (name != self.root, name not in subs))
        rows = [self._row(self.agents[name], "└ " if name in subs else "") for name in order]
        head = text(f"{self.deck.name} · {many(len(rows), 'agent')}")
        return notebook_html(head, table(("agent", "model", "tools", "time"), rows))

    def _row(self, agent: Agent, branch: str) -> tuple[str, str, str, str]:
        model = agent.card.run or "elsewhere"
        tools = ""
        if isinstance(agent, LLMAgent):
            model = agent.model.spec.key
            tools = ", ".join(agent.tools)
        seconds = agent.time_budget
        if agent.card.id == self.root:
            seconds = self.deck.settings.turn_budget_ms / 1000
        return branch + agent.card.id, model, tools, f"{seconds:g} s" if seconds else ""

    def with_agents(self, agents: Mapping[str, Agent]) -> "Team":
        """The same team with some agents replaced: stubs, remote peers."""
        return replace(self, agents=MappingProxyType({**self.agents, **agents}))

    def with_services(self, services: Mapping[str, object]) -> "Team":
        """The same team with a system in the place of each named sub-agent: a function, an agent of
        another framework, whatever `bridge_of` knows. Raises UnknownId for an id that is none,
        CodeError for what is no system."""
        cards = {card.id: card for card in self.orchestrator.sub_cards.values()}
        agents: dict[str, Agent] = {}
        for agent_id, service in services.items():
            if agent_id not in cards:
                raise UnknownId("sub-agent of open_kit(services=...)", agent_id, cards)
            bridge = bridge_of(service, f"the service of {agent_id!r}")
            agents[agent_id] = _api_agent(cards[agent_id], bridge, self.deck)
        return self.with_agents(agents)

    def with_faults(self) -> "Team":
        """The same team, ready for faults; an agent that is a peer's or a stub stays as it is."""
        agents: dict[str, Agent] = {}
        for agent_id, agent in self.agents.items():
            if isinstance(agent, LLMAgent):
                agents[agent_id] = faulty_agent(agent)
            elif isinstance(agent, ApiAgent):
                agents[agent_id] = faulty_api_agent(agent)
        return self.with_agents(agents)

    async def aclose(self) -> None:
        """Closes what belongs to the team; it may be called again."""
        for close in self.closing:
            await close()


def bind(
    deck: Deck,
    models: Models | None = None,
    tools: Toolbox | None = None,
    access: ModelAccess | None = None,
    places: Places | None = None,
) -> Team:
    """Resolves every model, tool, block and sub-agent of a deck.

    `models`: one key or model for all, or a mapping; None takes what each card names. `tools`: id -> tool or factory.
    `places`: what other teams have of these tools, so that all of them together keep within `at_once`.
    Raises BindError or UnknownId, naming the card and the nearest known ids. No model is called.
    """
    binder = _Binder(
        deck, models, tools or {}, access or ModelAccess(), {} if places is None else places
    )
    agents: dict[str, Agent] = {}
    for card in deck.active():
        if card.run is not None:
            agents[card.id] = _api_agent(card, deck.code.agents[card.run], deck)
        else:
            agents[card.id] = binder.agent(card)
    admission = None
    if deck.settings.turns_at_once:
        admission = asyncio.Semaphore(deck.settings.turns_at_once)
    return Team(
        deck,
        MappingProxyType(agents),
        deck.settings.orchestrator,
        binder.jobs(),
        secrets=binder.secrets,
        silences_langsmith=not (access or ModelAccess()).langsmith and langsmith_is_asked_for(),
        admission=admission,
        dangers=tuple(deck.dangers[locale].finder for locale in deck.settings.danger),
    )


def _api_agent(card: AgentCard, bridge: Bridge, deck: Deck) -> ApiAgent:
    return ApiAgent(card, bridge, deck.policy(card), contract_of(card))


class _Binder:
    def __init__(
        self, deck: Deck, models: Models | None, tools: Toolbox, access: ModelAccess, places: Places
    ):
        self._deck = deck
        self._models = models
        self._tools = tools
        self._access = access
        self._places = places
        self._cache: dict[tuple[str, Tuning], BaseChatModel] = {}
        self.secrets = access.secrets
        _check_names(models, deck)

    def agent(self, card: AgentCard) -> LLMAgent:
        subs = self._deck.active_sub_agents(card)
        tools = {tool_id: self._tool(card, tool_id) for tool_id in self._deck.tools_on(card)}
        schemas = [_schema(tool) for tool in tools.values()]
        schemas += [ask_tool(sub) for sub in subs]
        spec, model = self._model(card)
        # Known now, or the first turn would find out that the model cannot call tools.
        if subs:
            check_orchestrator(spec)
        if fault := window_fault(card, self._deck, spec):
            raise BindError(f"card {card.id!r}: {fault}, or choose another model for it")
        sub_cards = {sub.tool_name: sub for sub in subs}
        prompt = plan_prompt(card, self._deck)
        bounds: dict[str, ToolBounds] = {}
        for tool_id, tool in tools.items():
            limits = self._bounds(card, tool_id, tool)
            if limits is not None:
                bounds[tool.name] = limits
        bound = partial(
            _with_tools,
            schemas=schemas,
            private=private_fields(sub_cards),
            prefix=prompt.prefix,
            access=self._access,
            requests={"": card.requests, **_requests_of(subs), **self._requests_of_tools(card)},
            acts=tuple(name for name, limits in bounds.items() if limits.is_act),
            topics={sub.id: sub.topics for sub in subs if sub.topics},
            names={sub.id: sub.name for sub in subs if sub.name},
        )
        fallback_key: str | None = None
        composer_key: str | None = None
        # The deck's second models stand for the one that the card names, not for one the caller chose.
        if spec.key == card.model:
            fallback_key = fallback_of(card, self._deck.models)
            composer_key = self._deck.settings.compose_model if card.sub_agents else None
        return LLMAgent(
            card=card,
            model=bound(spec, model),
            prompt=prompt,
            tools=MappingProxyType({tool.name: tool for tool in tools.values()}),
            policy=self._deck.policy(card),
            sub_cards=MappingProxyType(sub_cards),
            fallback=self._second(card, "fallback", fallback_key, bound),
            composer=self._second(card, "composer", composer_key, bound),
            contract=contract_of(card),
            new_tools=MappingProxyType(new_tools(card, tools)),
            bounds=MappingProxyType(bounds),
        )

    def jobs(self) -> Mapping[str, BoundModel]:
        """The helper model is the caller's `helper`, or what answers for the orchestrator; else the
        deck's `helper_model`.

        A classifier's route is the orchestrator's own model's.
        """
        settings = self._deck.settings
        lead = self._deck.cards[settings.orchestrator]
        bound: dict[str, BoundModel] = {}
        agents = [card.id for card in self._deck.active_sub_agents(lead)]
        labels = in_sequence(agents, settings.support_agent)
        if labels:
            spec, model = self._model(lead)
            requests = _requests_of(self._deck.active_sub_agents(lead))
            bound[ROUTE] = _bind_one_tool(
                spec, model, ROUTE, route_tool(labels), self._access, requests=requests
            )
        if isinstance(self._models, Mapping) and "helper" in self._models:
            lead = lead.replace(id="helper")
        if settings.helper_model:
            lead = lead.replace(model=settings.helper_model, tuning=Tuning())
        spec, model = self._model(lead)
        jobs = list(JOBS.values())
        cards: dict[str, AgentCard] = {}
        for card in self._deck.active():
            job = distilling(card)
            if job is not None:
                jobs.append(job)
                cards[job.name] = card
        private = private_fields(cards)
        for job in jobs:
            bound[job.name] = _bind_one_tool(spec, model, job.name, job.tool, self._access, private)
        return MappingProxyType(bound)

    def _tool(self, card: AgentCard, tool_id: str) -> BaseTool:
        entry = self._tools.get(tool_id)
        if entry is None:
            raise UnknownId(f"tool of card {card.id!r}", tool_id, self._tools)
        if isinstance(entry, LimitedTool):
            if isinstance(entry.tool, BaseTool):
                return entry.tool
            return function_tool(tool_id, entry.tool)
        if isinstance(entry, BaseTool):
            return entry
        return entry(without_limits(self._deck.tool_config(card, tool_id)))

    def _bounds(self, card: AgentCard, tool_id: str, tool: BaseTool) -> ToolBounds | None:
        """Returns a tool's limits with the places that its calls share over all teams; None where it has neither."""
        limits = self._deck.tool_limits(
            card, tool_id, getattr(self._tools[tool_id], "limits", NO_LIMITS)
        )
        if limits.confirm and (fault := confirm_fault(limits, parameters(tool))):
            raise BindError(f"tool {tool_id!r} of card {card.id!r}: {fault}")
        at_once = limits.at_once or (THREADS if is_synchronous(tool) else 0)
        if not (at_once or limits.timeout_ms or limits.retries or limits.is_act):
            return None
        places = None
        if at_once:
            places = self._places.setdefault((tool_id, at_once), asyncio.Semaphore(at_once))
        return ToolBounds(limits, places, limits.is_act)

    def _requests_of_tools(self, card: AgentCard) -> _Requests:
        """Returns what people ask each tool of an orchestrator: what they ask its agent, or else the orchestrator."""
        if card.id != self._deck.settings.orchestrator:
            return {}
        requests: dict[str, tuple[str, ...]] = {}
        for owner in self._deck.cards.values():
            if owner.id != card.id:
                for tool_id in owner.tools:
                    requests.setdefault(tool_id, owner.requests)
        for tool_id in card.tools:
            requests.setdefault(tool_id, card.requests)
        return {tool: requests[tool] for tool in card.tools if requests[tool]}

    def _model(self, card: AgentCard) -> tuple[ModelSpec, BaseChatModel]:
        choice = self._models
        if isinstance(choice, Mapping):
            choice = choice.get(card.id, choice.get("*"))
        return self._build(card, choice or card.model)

    def _second(
        self, card: AgentCard, role: str, key: str | None, bound: Callable[..., BoundModel]
    ) -> BoundModel | None:
        """A card's model for a second role: what a mapping of models names under `<agent
        id>:<role>`, else `key`, else None."""
        choice: Model | None = None
        if isinstance(self._models, Mapping):
            choice = self._models.get(f"{card.id}:{role}")
        choice = choice or key
        if choice is None:
            return None
        spec, model = self._build(card, choice)
        if card.sub_agents and isinstance(choice, str):
            check_orchestrator(spec)
        return bound(spec, model)

    def _build(self, card: AgentCard, choice: Model) -> tuple[ModelSpec, BaseChatModel]:
        if not isinstance(choice, str):
            model, spec = choice if isinstance(choice, tuple) else (choice, spec_of_model(choice))
            self.secrets |= _keys_of(model)
            return spec, model
        specs = {OFFLINE.key: OFFLINE, **self._deck.models}
        if choice not in specs:
            close = nearest(choice, specs)
            raise BindError(
                f"card {card.id!r} is to speak with {choice!r}, which is no model of models.yaml: {close}"
            )
        spec = specs[choice]
        model = self._cache.get((choice, card.tuning))
        if model is None:
            planning = self._deck.settings.planning
            examples = planning.examples if planning else ()
            model = build_model(spec, self._access, card.tuning, self._deck.tools.folder, examples)
            self._cache[choice, card.tuning] = model
        self.secrets |= _keys_of(model)
        return spec, model


def _with_tools(
    spec: ModelSpec,
    model: BaseChatModel,
    schemas: _Schemas,
    private: _Private,
    prefix: str,
    access: ModelAccess,
    requests: _Requests,
    acts: tuple[str, ...],
    topics: Mapping[str, str],
    names: Mapping[str, str],
) -> BoundModel:
    options = _options(spec, requests=requests, acts=acts, topics=topics, names=names)
    try:
        runnable: Runnable[Any, Any] = model.bind_tools(schemas, **options) if schemas else model
    except NotImplementedError:
        fix = "write that method, or wrap the model in JsonRouting(inner=...)"
        raise BindError(
            f"model {spec.key!r} takes no tools, it has no bind_tools of its own: {fix}"
        ) from None
    if spec.api == "responses":
        runnable = Chained(runnable)
    return BoundModel(
        spec,
        runnable,
        private,
        schemas,
        prefix=prefix,
        gate=gate_of(spec, access),
    )


def _bind_one_tool(
    spec: ModelSpec,
    model: BaseChatModel,
    name: str,
    tool: dict[str, Any],
    access: ModelAccess,
    private: _Private = MappingProxyType({}),
    requests: _Requests = MappingProxyType({}),
) -> BoundModel:
    bound = model.bind_tools([tool], tool_choice=name, **_options(spec, requests=requests))
    return BoundModel(spec, bound, private, [tool], gate=gate_of(spec, access))


def _requests_of(cards: Sequence[AgentCard]) -> _Requests:
    return {card.id: card.requests for card in cards if card.requests}


def _options(spec: ModelSpec, **of_the_cards: Collection[Any]) -> dict[str, Any]:
    """What a model is bound with beside its tools, of what the cards say: the requests of agents, their topics, their
    names for people, and which tools do something in the world. It stays in this process: a provider would be sent,
    and paid for, what it does not need."""
    if spec.provider != OFFLINE.provider:
        return {}
    return {name: value for name, value in of_the_cards.items() if value}


def _check_names(models: Models | None, deck: Deck) -> None:
    if not isinstance(models, Mapping):
        return
    names = {"*", "helper", *deck.cards}
    for card_id in deck.cards:
        names |= {f"{card_id}:fallback", f"{card_id}:composer"}
    for name in models:
        card = deck.cards.get(name)
        if card is not None and card.run is not None:
            raise BindError(
                f"models name {name!r}, which runs {card.run} and takes no model; take it out"
            )
        if name not in names:
            close = nearest(name, names)
            raise BindError(f"models name {name!r}, and the deck has no such card: {close}")


def _schema(tool: BaseTool) -> dict[str, Any]:
    if isinstance(tool.args_schema, dict):
        return function_schema(tool.name, tool.description, tool.args_schema)
    return convert_to_openai_tool(tool)


def _keys_of(model: BaseModel) -> frozenset[str]:
    """The secrets that a model, or one inside it, was given."""
    keys = frozenset[str]()
    # Models wrap models: a key may sit in the inner one alone.
    for value in vars(model).values():
        if isinstance(value, SecretStr) and len(value.get_secret_value()) >= SHORTEST:
            keys |= {value.get_secret_value()}
        elif isinstance(value, BaseChatModel):
            keys |= _keys_of(value)
    return keys
