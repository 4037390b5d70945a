"""The bus over Redis Streams, for a service of several processes."""

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Collection, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, TypeVar

from coredis import PureToken, Redis
from coredis.exceptions import ConnectionError as RedisGone
from coredis.exceptions import RedisError

from kit.stores.bus.bus import FIRST, LONGEST, BusError, Entry

T = TypeVar("T")
PREFIX = "kit:bus:"
"""What the key of every stream begins with."""
LIFETIME = 3600
"""Seconds after which a stream goes that nobody adds to."""
PATIENCE = 5.0
"""Seconds without an answer after which a Redis counts as gone."""
MOST_CONNECTIONS = 1000
"""A reader that waits has a connection for itself."""


class RedisBus:
    """The Bus protocol over one Redis. One that is gone for a while is reached again by itself."""

    def __init__(self, redis: "Redis[str]"):
        self._redis = redis

    async def publish(self, stream: str, body: Mapping[str, Any]) -> str:
        """Adds an entry and returns its id. Raises BusError."""
        return await send(self._publish(PREFIX + stream, json.dumps(body)))

    async def _publish(self, key: str, text: str) -> str:
        # An error that the pipeline raises itself repeats the command, and with it what the turn's user reads.
        async with self._redis.pipeline(transaction=False, raise_on_error=False) as pipe:
            adding = pipe.xadd(
                key,
                {"body": text},
                trim_strategy=PureToken.MAXLEN,
                trim_operator=PureToken.APPROXIMATELY,
                threshold=LONGEST,
            )
            pipe.expire(key, LIFETIME)
        return str(await adding)

    async def read(self, stream: str, after: str = FIRST, wait: float = 0.0) -> list[Entry]:
        """Returns the entries after the one of that id; waits so many seconds for the first of them.
        Raises BusError."""
        key = PREFIX + stream
        milliseconds = max(1, round(wait * 1000)) if wait else None
        reply = await send(self._redis.xread({key: after}, block=milliseconds), PATIENCE + wait)
        entries: list[Entry] = []
        for rows in (reply or {}).values():
            for row in rows:
                entries.append(Entry(str(row.identifier), json.loads(row.field_values["body"])))
        return entries

    async def last(self, stream: str) -> str:
        """Returns the id of the newest entry, FIRST where there is none. Raises BusError."""
        rows = await send(self._redis.xrevrange(PREFIX + stream, count=1))
        if rows:
            return str(rows[0].identifier)
        return FIRST

    async def remove(self, keys: Collection[str]) -> int:
        """Removes keys of Redis, and returns how many there were. Raises BusError.

        A Redis that keeps files writes them anew: what was deleted stands in the old ones.
        """
        count = await send(self._redis.delete(list(keys)))
        kept = await send(self._redis.config_get(["appendonly", "save"]))
        if kept.get("appendonly") == "yes":
            await send(self._redis.bgrewriteaof())
        if kept.get("save"):
            await send(self._redis.bgsave(schedule=True))
        return count


@asynccontextmanager
async def open_redis_bus(url: str) -> "AsyncGenerator[RedisBus]":
    """Opens the bus. A Redis that cannot be reached yet is no fault: the first message says so."""
    async with open_redis(url) as redis:
        yield RedisBus(redis)


@asynccontextmanager
async def open_redis(url: str) -> "AsyncGenerator[Redis[str]]":
    """Opens a client of a Redis."""
    client = Redis.from_url(url, decode_responses=True, max_connections=MOST_CONNECTIONS)
    async with in_own_task(client):
        yield client


@asynccontextmanager
async def in_own_task(opening: AbstractAsyncContextManager[object]) -> AsyncGenerator[None]:
    """Enters and leaves a context in a task of its own; raises what entering raises.

    What coredis and streaq open wraps every error of its block in a group of errors.
    """
    closing = asyncio.Event()
    is_open = asyncio.Event()

    async def hold() -> None:
        async with opening:
            is_open.set()
            await closing.wait()

    holding = asyncio.create_task(hold())
    waiting = asyncio.create_task(is_open.wait())
    await asyncio.wait((holding, waiting), return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    if holding.done():
        await holding
    try:
        yield
    finally:
        closing.set()
        await holding


async def send(command: Awaitable[T], seconds: float = PATIENCE) -> T:
    """Sends a command to Redis, and waits so many seconds for its answer. Raises BusError."""
    try:
        async with asyncio.timeout(seconds):
            return await command
    except (RedisGone, TimeoutError) as error:
        # Its own words may hold the address, and that a password.
        raise BusError("Redis cannot be reached: start it, or unset KIT_REDIS") from error
    except RedisError as error:
        raise BusError(f"Redis refused: {error}") from error
