"""The kit: a card for each child, whose service is the child's function; a child with tools is a card with a model."""

from typing import Any

import langchain_openai  # noqa: F401  (imported before the plays are forked, or each would import it)

from kit import AgentCard, Deck, Principal, Session, Settings, open_kit
from kit.compose.parts import DeckSettings
from kit.conformance.task import Child, Model, Task
from kit.core.card import Policy
from kit.core.envelope import EnricherRequest, EnricherResponse, Inbound
from kit.core.model import ModelSpec
from kit.tools.enricher import PAYLOAD_VERSION, EnricherSpec, Rendering, Wording, enricher_tool
from kit.wire import Kit

NAME = "subagent-kit"
PACKAGES = ["langchain-core", "langchain-openai"]
DEFAULTS_SOURCE = "memory.md"
BEST_SOURCE = "decisions.md"
CONFIGURATION = (
    "the cap of the scenario, `time_budget_ms` and `cost` of a policy, an enricher for data of the "
    "context service, `kit.resume` for a turn whose process died"
)
NOT_OFFERED: dict[str, str] = {}
PRICE = 0.01
"""Dollars of one model call, by which a number of calls is a cost."""


def _spec(model: Model) -> ModelSpec:
    # The endpoint counts a hundred tokens read and twenty written for each call.
    return ModelSpec(
        key=model.name,
        provider="openai",
        base_url=model.base_url,
        price_in=PRICE * 10_000,
        price_out=0.0,
    )


class _Row(Inbound):
    text: str


def _enricher(lookup: Child) -> Any:
    """The lookup as a tool of the context service, whose envelope says whose data it holds."""

    async def enrich(request: EnricherRequest) -> EnricherResponse[Any]:
        assert lookup.data is not None
        data = await lookup.data(request.request_id)
        return EnricherResponse(
            status="ok",
            domain_type="trip",
            enricher_id=lookup.name,
            version=PAYLOAD_VERSION,
            principal=Principal(tenant_id="acme", user_id=data.principal),
            payload={"text": data.text},
        )

    wording = Wording(_Row, lambda row: Rendering(row.text))
    spec = EnricherSpec(lookup.name, lookup.description, "trip", lookup.name, wording)
    return enricher_tool(spec, enrich, {})


def _tool(lookup: Child, task: Task) -> Any:
    if task.best and task.model_calls is None:
        return _enricher(lookup)
    return lookup.ask


def _deck(task: Task) -> Deck:
    cards: list[AgentCard] = []
    models = [_spec(task.model)]
    tools: dict[str, Any] = {}
    limits = Policy()
    tree = Policy()
    settings: dict[str, Any] = {}
    if task.best and task.seconds is not None:
        limits = Policy(time_budget_ms=int(task.seconds * 1000))
    if task.best and task.model_calls is not None:
        tree = Policy(cost=task.model_calls * PRICE)
    if task.best and task.cap is not None:
        settings["cap"] = task.cap
    for child in task.children:
        model = task.model.name
        if child.model is not None:
            model = child.model.name
            models.append(_spec(child.model))
        for lookup in child.tools:
            tools[lookup.name] = _tool(lookup, task)
        cards.append(
            AgentCard(
                id=child.name,
                description=child.description,
                model=model,
                tools=tuple([lookup.name for lookup in child.tools]),
                policy=limits,
            )
        )
    lead = AgentCard(
        id="lead",
        description="Asks the others.",
        model=task.model.name,
        sub_agents=tuple([child.name for child in task.children]),
        policy=tree,
    )
    return Deck.of(
        [lead, *cards],
        models=models,
        settings=DeckSettings(orchestrator="lead", required_blocks=(), **settings),
        tools=tools or None,
    )


async def _ask(kit: Kit, session: Session, task: Task) -> str:
    if task.best and task.resumes:
        for turn in kit.store.turns(session.id):
            if turn.status == "interrupted":
                return (await kit.resume(turn.id, who=session.principal)).text
    return (await kit.ask(task.message, session)).text


async def system(task: Task) -> str:
    services = {child.name: child.ask for child in task.children if child.model is None}
    settings = Settings(
        store=str(task.folder / "kit.db"),
        openai_api_key="none",
        openai_base_url=task.model.base_url,
    )
    async with open_kit(settings, deck=_deck(task), services=services) as kit:
        principal = Principal(tenant_id="acme", user_id=task.principal)
        return await _ask(kit, Session(id=task.session, principal=principal), task)
