"""A user is forgotten: their rows, their bytes, the sums they were part of, and nobody else's."""

import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from kit import Settings, open_kit
from kit.core.context import OPERATOR, Principal, Session, SessionKey
from kit.core.errors import StoreBusy
from kit.core.record import Feedback, Note
from kit.runtime.clock import run_virtual
from kit.stores.sqlite import SqliteStore, open_for_reading
from kit.stores.turn_store import TurnStore
from tests.cli.test_cli import refused, run
from tests.redis_server import redis_server
from tests.sample_turn import a_turn

SECRET = "how many points do I have, said Zebulon"
ANN, BEN = (
    Principal(tenant_id="acme", user_id="u-001"),
    Principal(tenant_id="acme", user_id="u-002"),
)


def fill(path: Path | str) -> None:
    """Turns of two users of one tenant and of a namesake of another, with notes and thumbs."""
    run_virtual(_fill(path))


async def _fill(path: Path | str) -> None:
    async with open_kit(Settings(store=str(path), pace=0.0, model="offline")) as kit:
        namesake = Principal(tenant_id="globex", user_id="u-001")
        for name, who in (("mine", ANN), ("bens", BEN), ("mine", namesake)):
            for message in (
                SECRET if who is ANN else "how many points do I have",
                "find coffee deals",
            ):
                reply = await kit.ask(message, Session(id=name, principal=who))
                kit.store.give_feedback(Feedback(turn_id=reply.turn_id, score=1, note="good"))
            kit.store.keep_note(
                SessionKey(who.tenant_id, name), "summary", Note(value=message, at=1.0)
            )
        kit.store.tally()


def counts(path: Path, who: str) -> dict[str, int]:
    """Rows of one user, found by what each table says of itself."""
    with closing(sqlite3.connect(path)) as db:
        mine = f"SELECT id FROM turns WHERE {who}"
        sessions = f"SELECT tenant_id, id FROM sessions WHERE {who}"
        rows = {
            "turns": who,
            "sessions": who,
            "messages": f"turn_id IN ({mine}) OR (tenant_id, session_id) IN ({sessions})",
            "notes": f"(tenant_id, session_id) IN ({sessions})",
            "feedback": f"turn_id IN ({mine})",
        }
        return {
            table: db.execute(f"SELECT count(*) FROM {table} WHERE {where}").fetchone()[0]
            for table, where in rows.items()
        }


@pytest.mark.req("K-11")
def test_a_user_is_removed_from_every_table_and_from_the_bytes_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "kit.db"
    app = SqliteStore(path)  # keeps the write-ahead log alive
    fill(path)
    mine = "tenant_id = 'acme' AND user_id = 'u-001'"
    everybody_else = ("tenant_id = 'acme' AND user_id = 'u-002'", "tenant_id = 'globex'")
    others = [counts(path, who) for who in everybody_else]
    ours = counts(path, mine)
    assert all(ours.values()) and all(all(other.values()) for other in others)
    with closing(open_for_reading(path)) as db:
        query = "SELECT log FROM logs JOIN turns USING (number) WHERE user_id = ? AND tenant_id = ?"
        logs = [log[-32:] for (log,) in db.execute(query, ("u-001", "acme"))]
    traces = (b"Zebulon", *logs)
    written = Path(f"{path}-wal").read_bytes()
    assert len(traces) > 1 and all(trace in written for trace in traces)
    result = run("data", "forget", "u-001", "--tenant", "acme", KIT_STORE=str(path))
    assert result.returncode == 0, result.stderr
    assert all(f"{count} {table}" in result.stdout for table, count in ours.items())
    assert "Opik" in result.stdout and not any(counts(path, mine).values())
    assert [counts(path, who) for who in everybody_else] == others
    rest = [file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()]
    assert not any(trace in content for content in rest for trace in traces)
    app.close()


@pytest.mark.req("K-11")
def test_traces_of_grids_and_recordings_that_are_named_go_too(tmp_path: Path) -> None:
    path, traces = tmp_path / "kit.db", tmp_path / "grids" / "mine" / "traces.db"
    traces.parent.mkdir(parents=True)
    fill(path)
    fill(traces)
    tapes = [tmp_path / "theirs.jsonl", tmp_path / "other.jsonl"]
    for tape, message in zip(tapes, (SECRET, "show my receipts please"), strict=True):
        assert run("ask", message, "--cassette", str(tape), "--record").returncode == 0
    named = [argument for tape in tapes for argument in ("--cassette", str(tape))]
    result = run("data", "forget", "u-001", "--tenant", "acme", *named, KIT_STORE=str(path))
    assert result.returncode == 0 and not any(
        counts(traces, "tenant_id = 'acme' AND user_id = 'u-001'").values()
    )
    assert [tape.exists() for tape in tapes] == [
        False,
        True,
    ] and f"{tapes[0]}: deleted" in result.stdout


@pytest.mark.realtime
@pytest.mark.req("K-11")
def test_what_processes_were_told_of_the_turns_of_a_user_goes_from_redis_and_its_files(
    tmp_path: Path,
) -> None:
    words = {"u-001": "plumwordtown", "u-002": "pearwordtown"}
    store = str(tmp_path / "kit.db")
    with redis_server(tmp_path) as server:
        who = {"KIT_STORE": store, "KIT_REDIS": server.url, "KIT_TENANT": "acme"}
        for user, word in words.items():
            run("ask", f"coffee deals in {word}", "--session", user, KIT_USER=user, **who)
            assert word in server.content()
        result = run("data", "forget", "u-001", KIT_STORE=store, KIT_REDIS=server.url)
        assert result.returncode == 0 and "Redis: 1 key" in result.stdout
        assert words["u-001"] not in server.content() and words["u-002"] in server.content()
        # Redis writes its files anew beside what it does.
        until = time.monotonic() + 60
        while any(words["u-001"].encode() in path.read_bytes() for path in files_of(tmp_path)):
            assert time.monotonic() < until, "the files of Redis hold the words still"
            time.sleep(0.05)
        assert any(words["u-002"].encode() in path.read_bytes() for path in files_of(tmp_path))


def files_of(folder: Path) -> list[Path]:
    """The files that a Redis keeps there."""
    return [path for path in (folder / "appendonlydir").iterdir() if path.is_file()]


def test_a_user_of_several_tenants_or_of_none_has_to_be_named_with_one(place: str) -> None:
    fill(place)
    refused(run("data", "forget", "u-001", KIT_STORE=place), "--tenant", "acme, globex")
    refused(run("data", "forget", "u-009", KIT_STORE=place), "--tenant", "no stored turn")
    assert run("data", "forget", "u-009", "--tenant", "acme", KIT_STORE=place).returncode == 1
    assert run("data", "forget", "u-002", KIT_STORE=place).returncode == 0


def test_a_user_whose_turn_is_running_is_not_forgotten_by_half(store: TurnStore) -> None:
    turn = a_turn("t1").model_copy(update={"status": "running"})
    store.begin_turn(
        turn,
        Session(
            id=turn.session_id, principal=Principal(tenant_id=turn.tenant_id, user_id=turn.user_id)
        ),
    )
    with pytest.raises(StoreBusy, match="try again when it has ended"):
        store.forget(Principal(tenant_id=turn.tenant_id, user_id=turn.user_id))
    assert store.turn("t1", OPERATOR) is not None and store.session(turn.session_key) is not None
