"""What the API needs is gone for a while: it says so, and goes on by itself once that is back."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from kit.core.errors import StoreError
from kit.stores.documents import tables
from kit.stores.documents.sql import SqlPlans
from tests.service.servers import ACME, chat

pytestmark = pytest.mark.realtime


async def test_while_somebody_else_writes_the_store_what_reads_goes_on_and_what_writes_is_told_to_come_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "PATIENCE", 1.0)
    path = tmp_path / "kit.db"
    soul = {"persona": {"name": "Ada"}, "user_id": "alice"}
    async with chat(store=path) as api:
        first = (await api.run()).json()

        async def put_soul() -> int:
            return (await api.http.put("/agent/souls/acme", json=soul, headers=ACME)).status_code

        with closing(sqlite3.connect(path, isolation_level=None)) as writer:
            writer.execute("BEGIN EXCLUSIVE")
            refused = asyncio.create_task(
                api.http.put("/agent/souls/acme", json=soul, headers=ACME)
            )
            turns = await api.http.get("/agent/sessions/s1/turns", headers=ACME)
            assert turns.json()["turns"][0]["turn_id"] == first["turn_id"]
            assert (await api.http.get("/agent/plans", headers=ACME)).status_code == 200
            assert (await api.http.get("/ready")).status_code == 200
            # Neither of them waited for the one that writes.
            assert not refused.done()
            reply = await refused
            assert (reply.status_code, reply.headers["retry-after"]) == (503, "5")
            answered = asyncio.create_task(api.run(session="s2"))
            await asyncio.sleep(0.3)
            writer.execute("ROLLBACK")
        assert (await answered).json()["status"] == "ok"
        assert await put_soul() == 200
        assert len(api.kit.store.turns()) == 2


async def test_it_is_not_ready_while_its_documents_cannot_be_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They may be on another server than the turns, and no plan is run without them."""

    async def gone(*_: object) -> None:
        raise StoreError("the documents cannot be reached")

    async with chat() as api:
        with monkeypatch.context() as patched:
            patched.setattr(SqlPlans, "read", gone)
            unready = await api.http.get("/ready")
        assert unready.status_code == 503 and "cannot be reached" in unready.text
        assert (await api.http.get("/ready")).status_code == 200
