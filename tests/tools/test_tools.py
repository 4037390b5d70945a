"""The tools of the consumer deck: on behalf of the user, verified, decided by status, worded in plain sentences."""

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest
from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool

from kit.core.bodies.call import Envelope
from kit.core.bodies.speech import Status
from kit.core.context import InheritedContext, Principal
from kit.core.envelope import EnricherRequest
from kit.core.errors import BindError
from kit.core.event import Body
from kit.core.outcome import Reason
from kit.tools.enricher import CAVEAT, UNAVAILABLE, Enrich, HttpEnrich
from kit.tools.tool import ToolContext, ToolResult, within
from kit.worlds.consumer.support import HttpSupport
from kit.worlds.consumer.support_service import support_app
from kit.worlds.consumer.tools import SPECS
from kit.worlds.manga.tools import SKILLS
from tests.kits import STATUSES
from tests.services.test_upstream import ACME, GLOBEX, Reply, client, world
from tests.worlds import TOOL_IDS, context_app, toolbox

MARK = "TAINTED-7f3a"
COLLEAGUE = Principal(tenant_id="acme", user_id="u-002")


@dataclass
class Watched:
    """Passes requests on to the real service and keeps them; may alter what comes back."""

    enrich: Enrich
    alter: Callable[[Reply], Reply] = lambda reply: reply
    asked: list[EnricherRequest] = field(default_factory=list[EnricherRequest])

    async def __call__(self, request: EnricherRequest) -> Reply:
        self.asked.append(request)
        return self.alter(await self.enrich(request))


@dataclass
class Run:
    """What one tool call gave: its message, its typed result, its events."""

    message: ToolMessage
    result: ToolResult
    events: list[Body]

    @property
    def envelopes(self) -> list[Envelope]:
        return [event for event in self.events if isinstance(event, Envelope)]

    def everything(self) -> str:
        return f"{self.message!r} {self.result!r} {self.events!r}"


async def call(
    tool: BaseTool,
    principal: Principal = ACME,
    episode: str = "e1",
    prior: str | None = None,
    **args: Any,
) -> Run:
    events: list[Body] = []
    inherited = InheritedContext(
        principal=principal, episode_id=episode, locale="en-US", prior_context=prior
    )
    with within(ToolContext(agent="shop", turn_id="t1", inherited=inherited, emit=events.append)):
        message = await tool.ainvoke(
            {"type": "tool_call", "name": tool.name, "args": args, "id": "c1"}
        )
    assert isinstance(message.artifact, ToolResult) and message.content == message.artifact.text
    return Run(message, message.artifact, events)


@asynccontextmanager
async def opened(
    alter: Callable[[Reply], Reply] = lambda reply: reply, latency: float = 0.0
) -> AsyncGenerator[Any, None]:
    """A factory of tools over the embedded services, and what their requests were."""
    async with (
        client(context_app(world(), latency=latency)) as context,
        client(support_app(world(), pace=latency)) as support,
    ):
        watched = Watched(HttpEnrich(context), alter)
        box = toolbox(watched, HttpSupport(support))

        def make(name: str, config: Mapping[str, Any] | None = None) -> BaseTool:
            tool = box[name](config or {})
            tool.metadata = {"asked": watched.asked}
            return tool

        yield make


def altered(**changes: Any) -> Callable[[Reply], Reply]:
    return lambda reply: reply.model_copy(update=changes)


# The box


async def test_every_status_a_tool_sends_is_in_the_vocabulary():
    assert {status for spec in (*SPECS, *SKILLS) for status in spec.statuses} <= STATUSES
    assert all(spec.statuses for spec in (*SPECS, *SKILLS))


async def test_a_tools_schema_is_plain_and_shows_neither_principal_nor_context():
    async with opened() as make:
        for name in TOOL_IDS:
            schema = make(name).args_schema
            assert isinstance(schema, dict) and schema["type"] == "object"
            assert not {"principal", "user_id", "tenant_id", "context"} & set(schema["properties"])
            assert all(spec["description"] for spec in schema["properties"].values())


# On behalf of the user


@pytest.mark.req("PC2-FR-9")
async def test_a_call_is_one_request_and_one_envelope():
    async with opened() as make:
        tool = make("search_offers")
        run = await call(tool, query="coffee")
        asked: list[EnricherRequest] = (tool.metadata or {})["asked"]
    assert len(asked) == len(run.envelopes) == 1
    assert run.events == [Status(agent="shop", status="searching_offers"), run.envelopes[0]]


# Verified before anything else sees it


@pytest.mark.req("PC2-FR-12", "PC2-S9.1-4", "PC2-S9.1-5", "PC2-S5.5", "PC2-S9.4-2", "PC2-S9.5-8")
@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"principal": GLOBEX, "status": "error", "version": "9.0.0"}, "principal_mismatch"),
        ({"principal": COLLEAGUE, "status": "partial"}, "principal_mismatch"),
        ({"payload": {"offers": [{"id": "of-1", "title": MARK}]}}, "contract_violation"),
        ({"payload": None}, "contract_violation"),
        ({"enricher_id": "products"}, "contract_violation"),
        ({"domain_type": "rewards"}, "contract_violation"),
        ({"version": "2.0.0"}, "unavailable"),
        ({"version": "x"}, "unavailable"),
        ({"version": "1.9.3"}, None),
    ],
)
async def test_a_reply_of_another_principal_form_or_version_reaches_nobody(
    changes: dict[str, Any], fault: Reason | None
):
    """A minor skew of versions is tolerated, a breaking one is reported."""

    def marked(reply: Reply) -> Reply:
        sent: dict[str, Any] = {**(reply.payload or {}), "topic": MARK}
        return reply.model_copy(update={"payload": sent, **changes})

    async with opened(marked) as make:
        run = await call(make("search_offers"), query="coffee")
    [envelope] = run.envelopes
    assert run.result.fault == fault
    assert envelope.principal_verified is (fault != "principal_mismatch")
    assert envelope.version_ok is not changes.get("version", "1").startswith(("2", "9", "x"))
    if fault:
        assert (run.result.text, run.result.components) == (UNAVAILABLE, ())
        assert MARK not in run.everything()
    if fault == "principal_mismatch":
        assert str(changes["principal"]) not in run.everything()


# Status alone decides


@pytest.mark.req("PC2-FR-10", "PC2-S9.1-6", "PC2-S5.5", "PC2-S9.4-2")
async def test_ok_gives_the_data_partial_adds_a_caveat_error_gives_none():
    runs: dict[str, Run] = {}
    for status in ("ok", "partial", "error"):
        async with opened(altered(status=status)) as make:
            runs[status] = await call(make("search_offers"), query="coffee")
    ok, partial, error = (runs[status].result for status in ("ok", "partial", "error"))
    assert (
        ok.text.startswith("Coffee offers")
        and ok.caveat is None
        and ok.fault is None
        and len(ok.components) == 3
    )
    assert (partial.text, partial.caveat, partial.fault) == (f"{ok.text} {CAVEAT}", CAVEAT, None)
    assert partial.components == ok.components
    assert (error.text, error.caveat, error.fault, error.components) == (
        UNAVAILABLE,
        None,
        "unavailable",
        (),
    )
    assert [run.envelopes[0].status for run in runs.values()] == ["ok", "partial", "error"]


# A service that fails


HALF = '{"kind":"opened","conversation_id":"sc-1"}\n{"kind":"text","text":"Half"}\n'


@pytest.mark.req("PC2-FR-12", "PC2-S5.5")
@pytest.mark.parametrize(
    ("status", "body", "fault"),
    [
        (403, f'{{"error":"{MARK}"}}', "principal_mismatch"),
        (500, f"Traceback {MARK}", "unavailable"),
        (200, f"<html>{MARK}", "contract_violation"),
        (200, HALF, "contract_violation"),
        (None, MARK, "unavailable"),
    ],
)
async def test_what_a_failing_service_writes_reaches_neither_model_nor_trace(
    status: int | None, body: str, fault: Reason
):
    """Both services answer so, or (without a status) are not there; support's answer may stop in the middle."""

    def answer(request: httpx.Request) -> httpx.Response:
        if status is None:
            raise httpx.ConnectError(body)
        return httpx.Response(status, text=body)

    transport = httpx.MockTransport(answer)
    async with httpx.AsyncClient(transport=transport, base_url="http://nowhere.internal") as http:
        box = toolbox(HttpEnrich(http), HttpSupport(http))
        points = await call(box["get_user_points"]({}))
        support = await call(box["ask_support_service"]({}), query="scan")
    assert points.result.fault == fault and points.result.detail
    for run in (points, support):
        assert run.result.text == UNAVAILABLE and MARK not in run.everything()
    assert support.result.fault is not None
    assert body != HALF or support.result.fault == "unavailable"


# Configuration and arguments


async def test_a_setting_a_tool_does_not_know_is_a_fault_of_the_deck():
    async with opened() as make:
        with pytest.raises(BindError, match=r"search_offers.*limits.*limit, timeout_ms"):
            make("search_offers", {"limits": 3})


async def test_clumsy_arguments_are_understood():
    async with opened() as make:
        search = make("search_offers")
        few = await call(search, query="coffee", limit=3.0, made_up=[1])
        result = (await call(search, query="Coffees?", limit="three")).result
    assert result.components == few.result.components
    assert [component.payload["category"] for component in result.components] == ["Coffee"] * 3


# What is said


async def test_every_tool_speaks_in_sentences_and_shows_typed_components():
    kinds: dict[str, set[str]] = {}
    async with opened() as make:
        for spec in SPECS:
            result = (await call(make(spec.id), query="")).result
            assert result.text[0].isupper() and result.text.endswith("."), result.text
            assert not {"{", "}", "None", "_"} & set(result.text.split()), result.text
            kinds[spec.id] = {component.type for component in result.components}
    assert set().union(*kinds.values()) == {
        "offer",
        "product",
        "points",
        "reward",
        "receipt",
        "game",
        "restaurant",
        "retailer",
    }
    assert kinds["get_user_points"] == {"points"} and kinds["calculate_redemption"] == {"reward"}


# Support and feedback
