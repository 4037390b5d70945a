"""`kit data forget`: a user is removed from every store that the settings name."""

import asyncio
from argparse import Namespace
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kit.core.context import Principal
    from kit.core.record import TurnRecord
    from kit.settings import Settings

MOST_PLANS = 1_000_000
"""Of one user: all."""

ELSEWHERE = (
    "Not reached: copies sent to Opik or to a collector of spans, what providers of models keep, exports of the page, "
    "sheets and cases written by `drift` and `cases`, recordings not named by --cassette, and "
    "temporary files of a task whose "
    "process died, which go when a kit opens an hour later."
)


def add_to_data(commands: Any) -> None:
    """Adds the command of the group `data`."""
    forget = commands.add_parser(
        "forget", help="remove a user from the store and from the traces of grids"
    )
    forget.add_argument("user")
    forget.add_argument(
        "--tenant", help="whose user it is (default: the one tenant that has a user of that id)"
    )
    forget.add_argument(
        "--cassette",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="a recording, deleted if they ask in it; repeatable",
    )
    forget.set_defaults(run=_forget)


def _forget(arguments: Namespace) -> int:
    from kit.core.context import Principal
    from kit.core.display.count import many
    from kit.core.secret import is_url, without_password
    from kit.settings import Settings
    from kit.stores.opening import open_store

    settings = Settings.read()
    user = arguments.user
    stores: list[str] = []
    for store in (settings.store, *map(str, sorted(settings.grids.glob("*/traces.db")))):
        if is_url(store) or Path(store).is_file():
            stores.append(store)
    turns = list(chain.from_iterable(_turns(store, user) for store in stores))
    tenant = arguments.tenant or _tenant(user, {turn.tenant_id for turn in turns})
    turns = [turn for turn in turns if turn.tenant_id == tenant]
    principal = Principal(tenant_id=tenant, user_id=user)
    questions = {turn.message for turn in turns}
    # Recordings go first: once the turns are gone nobody knows the questions.
    recordings: list[Path] = []
    for path in arguments.cassette:
        if _delete(path, questions):
            recordings.append(path)
    total = len(recordings)
    redis_keys: list[str] = []
    if settings.redis is not None:
        redis_keys = _redis_keys(settings, principal, turns)
    for place in stores:
        documents = settings.documents if place == settings.store else None
        with closing(open_store(place, documents=documents)) as store:
            counts = store.forget(principal)
        total += sum(counts.values())
        print(
            f"{without_password(place)}: "
            + ", ".join(f"{count} {table}" for table, count in counts.items())
        )
    if settings.redis is not None:
        count = asyncio.run(_remove_from_redis(settings.redis, redis_keys))
        total += count
        print(f"Redis: {many(count, 'key')}")
    for path in recordings:
        print(f"{path}: deleted")
    print(ELSEWHERE)
    if total:
        return 0
    return 1


def _redis_keys(
    settings: "Settings", principal: "Principal", turns: "Sequence[TurnRecord]"
) -> list[str]:
    """Returns what Redis may hold of a user: what was heard of their turns, and what their plans were queued with. The
    store knows which they are, so it is asked before it forgets them."""
    from kit.core.extra import require

    require("redis", "coredis", "streaq", "cryptography")
    from kit.runtime.elsewhere.broadcast import turn_stream
    from kit.service.queue import job_key
    from kit.service.sealed_keys import key_name
    from kit.stores.bus.redis_bus import PREFIX
    from kit.stores.opening import open_store
    from kit.tools.task_memory import memory_stream

    streams = [memory_stream(principal), *(turn_stream(turn.id) for turn in turns)]
    keys = [PREFIX + stream for stream in streams]
    with closing(open_store(settings.store, documents=settings.documents)) as store:
        plans = asyncio.run(store.open_documents().plans.of(principal, limit=MOST_PLANS))
    for plan in plans:
        keys += (job_key(plan), key_name(plan))
    return keys


async def _remove_from_redis(url: str, keys: Sequence[str]) -> int:
    from kit.stores.bus.redis_bus import open_redis_bus

    async with open_redis_bus(url) as bus:
        return await bus.remove(keys)


def _turns(place: str, user: str) -> "Iterator[TurnRecord]":
    from kit.stores.opening import open_store

    with closing(open_store(place)) as store:
        yield from store.turns(user_id=user, limit=-1)


def _tenant(user: str, tenants: Collection[str]) -> str:
    from kit.core.errors import SettingsError

    if len(tenants) == 1:
        return next(iter(tenants))
    if tenants:
        raise SettingsError(
            f"several tenants have a user {user!r}: say which by --tenant; {', '.join(sorted(tenants))}"
        )
    raise SettingsError(
        f"no stored turn is of a user {user!r}; to remove what else may be theirs, say whose user it is by --tenant"
    )


def _delete(path: Path, questions: Collection[str]) -> bool:
    """Deletes a recording in which one of these questions is asked."""
    from kit.runtime.recording.recorded_call import read

    _, calls = read(path)
    for call in calls.values():
        for label, text in call.request:
            if label.endswith("(human)") and any(question in text for question in questions):
                path.unlink()
                return True
    return False
