"""The key of a request opens the skill service of its tenant, and is found nowhere else."""

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from kit import Kit
from kit.core.context import Session
from kit.core.documents.document import Plan
from kit.core.errors import BindError
from kit.tools.mcp.server import McpServer
from kit.tools.skills import HttpSkillService
from kit.wire import open_kit
from kit.worlds.outlets.server import skill_app
from kit.worlds.outlets.skill_service import SkillService
from kit.worlds.service.serve import serving
from tests.kits import OFFLINE, logged
from tests.service.servers import deck_of_plans

KEYS = {"acme": "acme-planted-0123456789", "globex": "globex-planted-0123456789"}
TASK = "Rank the active outlets by how they did in the last 8 weeks"

pytestmark = pytest.mark.realtime


class Desk:
    """A skill service over HTTP that serves two tenants, and notes who called which of its paths."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []
        """Path, and what stood in `X-Api-Key`."""

    @asynccontextmanager
    async def url(self) -> AsyncGenerator[str]:
        app = skill_app(SkillService(), KEYS)

        async def noting(scope: Any, receive: Any, send: Any) -> None:
            if scope["type"] == "http":
                headers = dict(scope["headers"])
                path = scope["raw_path"].decode()
                self.calls.append((path, headers.get(b"x-api-key", b"").decode()))
            await app(scope, receive, send)

        async with serving(noting) as url:
            yield f"{url}/api/{{tenant_id}}"

    @asynccontextmanager
    async def kit(self, folder: Path) -> AsyncGenerator[Kit]:
        """A kit of the outlets over this service, with no key of its own."""
        async with self.url() as url:
            settings = OFFLINE.with_(
                store=str(folder / "kit.db"),
                skill_service_url=url,
                variables={"PATH": os.environ["PATH"]},
            )
            deck = deck_of_plans()
            async with open_kit(settings, deck=deck, pattern="plan_execute") as kit:
                yield kit


async def plan_of(kit: Kit, session: Session, turn_id: str) -> Plan:
    plans = kit.store.open_documents().plans
    plan = await plans.read(session.principal, f"plan_{turn_id}")
    assert plan is not None
    return plan


@pytest.mark.req("AS-15")
async def test_a_plan_without_the_key_that_it_needs_waits_for_one_and_says_so(
    tmp_path: Path,
) -> None:
    desk = Desk()
    async with desk.kit(tmp_path) as kit:
        session = kit.session("s", "acme", "u-1")
        first = await kit.ask(TASK, session)
        again = await kit.resume(first.turn_id, who=session.principal)
        for reply in (first, again):
            assert reply.status == "failed" and "wants a key" in reply.text
            plan = await plan_of(kit, session, first.turn_id)
            assert (plan.status, plan.holder) == ("needs_key", None)
        assert await kit.store.open_documents().plans.unfinished() == []
        assert desk.calls == []
        key = SecretStr(KEYS["acme"])
        done = await kit.resume(first.turn_id, who=session.principal, key=key)
        plan = await plan_of(kit, session, first.turn_id)
        assert (done.status, plan.status) == ("ok", "complete") and desk.calls
        assert KEYS["acme"] not in logged(done)


async def test_no_tenant_leads_out_of_its_part_of_the_service() -> None:
    desk = Desk()
    async with desk.url() as url:
        service = HttpSkillService(McpServer(url=url), Path(), {})
        key = SecretStr(KEYS["globex"])
        async with service.client("../globex", key) as skills:
            await skills.find("outlets")
        assert desk.calls and all("/globex/" not in path for path, _ in desk.calls)
        with pytest.raises(BindError, match="cannot stand in the URL"):
            async with service.client("..", key):
                pass
