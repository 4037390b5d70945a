"""Many at once: nothing crosses, nothing is lost."""

import asyncio
import logging
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import get_args

import pytest

from kit.core.context import OPERATOR, Principal
from kit.core.documents.document import Scope
from kit.service.bodies import RunResult
from kit.service.client import ServiceClient, ServiceError
from kit.service.limits import Limits
from tests.plan_kits import Rows, opened_plans
from tests.service.servers import serving_kit

pytestmark = pytest.mark.realtime
TENANTS = 8
STREAMS = 60
SECRET = re.compile(r"secret-(\d\d)")
"""What a tenant says, and nobody else may read."""
MANY = Limits(turns_at_once=STREAMS, turns_a_minute=10 * STREAMS)


@pytest.mark.req("AS-19")
async def test_of_many_tenants_with_plans_of_equal_names_nothing_crosses(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """All at once, for users, sessions and Idempotency-Keys of one name; each has words of its own."""
    caplog.set_level(logging.DEBUG, "kit")
    async with opened_plans(tmp_path, Rows(idempotent=True)) as kit, serving_kit(kit, MANY) as api:
        url = str(api.http.base_url)

        async def use(number: int) -> tuple[RunResult, str]:
            """Returns the result of a tenant's plan, and everything that the tenant was told."""
            who = Principal(tenant_id=f"tenant-{number:02}", user_id="alice")
            async with ServiceClient(url, who) as client:
                message = f"secret-{number:02}"
                stream = client.stream("same", message, "key-1")
                told: list[object] = [event async for event in stream]
                result = stream.result
                assert result is not None and result.plan_id is not None and result.status == "ok"
                assert await client.run("same", message, "key-1") == result
                told += [event async for event in client.follow(result.turn_id, 3)]
                told += [result, await client.turns("same"), await client.plans()]
                told.append(await client.plan(result.plan_id))
                told.append(await client.trace(result.plan_id))
                told.append(await client.outputs(result.plan_id))
                for scope in get_args(Scope):
                    everybodys = " ".join(f"secret-{other:02}" for other in range(TENANTS))
                    params = {**who.model_dump(), "query_text": everybodys, "scope": scope}
                    headers = {
                        "X-Tenant-Id": who.tenant_id,
                        "X-User-Id": who.user_id,
                        "X-Session-Id": "same",
                    }
                    memories = await api.http.get(
                        "/agent/memory/query", params={**params, "top_k": 100}, headers=headers
                    )
                    assert memories.is_success
                    told.append(memories.json())
                return result, repr(told)

        results = await asyncio.gather(*(use(number) for number in range(TENANTS)))
        for number, (result, told) in enumerate(results):
            assert set(SECRET.findall(told)) == {f"{number:02}"}
            assert set(re.findall(r"tenant-(\d\d)", told)) == {f"{number:02}"}
            stranger = Principal(tenant_id=f"tenant-{(number + 1) % TENANTS:02}", user_id="alice")
            async with ServiceClient(url, stranger) as client:
                plan_id = result.plan_id or ""
                for ask in (client.plan, client.trace, client.outputs, client.cancel):
                    with pytest.raises(ServiceError, match="no such plan"):
                        await ask(plan_id)
                with pytest.raises(ServiceError, match="no such turn"):
                    await client.cancel_turn(result.turn_id)
                for stream in (client.resume(plan_id), client.follow(result.turn_id)):
                    with pytest.raises(ServiceError, match="no such"):
                        await anext(aiter(stream))
        for turn in kit.store.turns(limit=10 * TENANTS):
            events = str(kit.store.events(turn.id, OPERATOR))
            assert set(SECRET.findall(events)) == {turn.tenant_id[-2:]}
    with closing(sqlite3.connect(tmp_path / "kit.db")) as store:
        rows = [
            str(row)
            for (table,) in store.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            for row in store.execute(f'SELECT * FROM "{table}"')
        ]
    assert sum(bool(SECRET.search(row)) for row in rows) > 5 * TENANTS
    assert all(len(set(SECRET.findall(row))) <= 1 for row in rows)
    files = [path.read_text() for path in (tmp_path / "tasks").rglob("*") if path.is_file()]
    assert not SECRET.search("\n".join([caplog.text, *capfd.readouterr(), *files]))
