"""How many turns all processes of a deployment run, counted in Redis: whoever begins one takes a slot.

The slots of a process that died are free again after LEASE seconds. Moments are those of Redis, so that no clock of a
process counts.
"""

import asyncio
import logging
import uuid
from collections import defaultdict
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

from coredis import Redis

from kit.stores.bus.bus import BusError
from kit.stores.bus.redis_bus import open_redis, send

log = logging.getLogger("kit.bus")
RUNNING = "kit:turns:running:"
BEGUN = "kit:turns:begun:"
"""What the keys in Redis begin with: of the turns that run, and of those that began in the last minute."""
LEASE = 15
"""Seconds that a slot lasts unless its process renews it."""
DEPLOYMENT = "deployment"
PAUSE = 0.05
"""Seconds between two tries to get a slot."""
_TAKE = """
local time = redis.call('TIME')
local now = time[1] + time[2] / 1000000
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - tonumber(ARGV[4]))
if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[2]) then return '1' end
local a_minute = tonumber(ARGV[3])
if a_minute > 0 then
  redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now - 60)
  if redis.call('ZCARD', KEYS[2]) >= a_minute then
    return tostring(redis.call('ZRANGE', KEYS[2], 0, 0, 'WITHSCORES')[2] + 60 - now)
  end
  redis.call('ZADD', KEYS[2], now, ARGV[1])
  redis.call('EXPIRE', KEYS[2], 60)
end
redis.call('ZADD', KEYS[1], now, ARGV[1])
redis.call('EXPIRE', KEYS[1], ARGV[4])
return '0'
"""
_RENEW = """
local time = redis.call('TIME')
local now = time[1] + time[2] / 1000000
for index = 2, #ARGV do redis.call('ZADD', KEYS[1], 'XX', now, ARGV[index]) end
return redis.call('EXPIRE', KEYS[1], ARGV[1])
"""


class SharedTurns:
    """The slots of whoever is limited: `tenant:ID`, `visitor:ID`, the `deployment`."""

    def __init__(self, redis: "Redis[str]"):
        self._redis = redis
        self._own: defaultdict[str, set[str]] = defaultdict(set)
        """Of each the slots that this process has."""
        self._giving: set[asyncio.Task[None]] = set()

    async def take(self, whose: str, slot: str, at_once: int, a_minute: int = 0) -> float:
        """Takes a slot and returns 0, or the seconds after which there may be one; 0 turns a minute are any number.

        While Redis is gone each process counts its own, and this takes nothing.
        """
        keys = [RUNNING + whose, BEGUN + whose]
        try:
            reply = await send(self._redis.eval(_TAKE, keys, [slot, at_once, a_minute, LEASE]))
        except BusError as error:
            log.warning("turns of other processes are not counted: %s", error)
            return 0.0
        seconds = float(str(reply))
        if not seconds:
            self._own[whose].add(slot)
        return seconds

    def give_back(self, whose: str, slot: str) -> None:
        """Gives a slot back, beside what the caller does."""
        self._own[whose].discard(slot)
        task = asyncio.ensure_future(self._give_back(whose, slot))
        # The loop holds a task weakly.
        self._giving.add(task)
        task.add_done_callback(self._giving.discard)

    async def _give_back(self, whose: str, slot: str) -> None:
        # Where Redis is gone the slot ends with its lease.
        with suppress(BusError):
            await send(self._redis.zrem(RUNNING + whose, [slot]))

    async def renew(self) -> None:
        """Renews the slots of this process, until it is cancelled."""
        while True:
            await asyncio.sleep(LEASE / 3)
            for whose, slots in list(self._own.items()):
                if not slots:
                    del self._own[whose]
                    continue
                with suppress(BusError):
                    await send(self._redis.eval(_RENEW, [RUNNING + whose], [LEASE, *slots]))


class SharedAdmission:
    """Lets so many turns of a deployment work at once, as a semaphore does those of a process."""

    def __init__(self, turns: SharedTurns, at_once: int):
        self._turns = turns
        self._at_once = at_once
        # Not more of this process ask Redis again and again than could get a slot.
        self._here = asyncio.Semaphore(at_once)
        self._slots: dict[asyncio.Task[object] | None, str] = {}

    async def __aenter__(self) -> None:
        slot = uuid.uuid4().hex
        await self._here.acquire()
        try:
            while await self._turns.take(DEPLOYMENT, slot, self._at_once):
                await asyncio.sleep(PAUSE)
        except BaseException:
            self._here.release()
            raise
        self._slots[asyncio.current_task()] = slot

    async def __aexit__(self, *error: object) -> None:
        self._turns.give_back(DEPLOYMENT, self._slots.pop(asyncio.current_task()))
        self._here.release()


@asynccontextmanager
async def open_shared_turns(url: str) -> "AsyncGenerator[SharedTurns]":
    """Opens the slots that are counted in a Redis."""
    async with open_redis(url) as redis:
        turns = SharedTurns(redis)
        renewing = asyncio.create_task(turns.renew())
        try:
            yield turns
        finally:
            renewing.cancel()
