"""Plans that a worker is to run: put into the queue with the key that their request came with."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

from pydantic import SecretStr

from kit.core.documents.document import Plan
from kit.core.extra import require
from kit.settings import Settings

if TYPE_CHECKING:
    from kit.service.queue import PlanQueue
    from kit.service.sealed_keys import SealedKeys


class QueuedPlans:
    """The queue, and the keys of what is in it. Its methods raise BusError."""

    def __init__(self, queue: "PlanQueue", keys: "SealedKeys | None"):
        self.queue = queue
        self._keys = keys

    def takes(self, key: SecretStr | None) -> bool:
        """Whether a worker can run what came with this key: without `KIT_SEAL_KEY` it travels nowhere."""
        return key is None or self._keys is not None

    async def put(self, plan: Plan, key: SecretStr | None = None) -> None:
        """Queues a plan that is stored."""
        if key is not None and self._keys is not None:
            await self._keys.keep(plan, key)
        await self.queue.put(plan)

    async def key_of(self, plan: Plan) -> SecretStr | None:
        """Returns the key that a plan was queued with; None where there is none any more."""
        if self._keys is None:
            return None
        return await self._keys.key_of(plan)

    async def drop_key(self, plan: Plan) -> None:
        """Lets the key of a plan go that has ended."""
        if self._keys is not None:
            await self._keys.drop(plan)


@asynccontextmanager
async def open_queued_plans(settings: Settings) -> "AsyncGenerator[QueuedPlans | None]":
    """Opens the queue that the settings name; None where they name none. Raises BusError."""
    if settings.redis is None:
        yield None
        return
    require("redis", "streaq", "coredis", "cryptography")
    # Who serves without Redis need not have what speaks with it.
    from kit.service.queue import open_queue
    from kit.service.sealed_keys import open_sealed_keys

    async with AsyncExitStack() as stack:
        queue = await stack.enter_async_context(open_queue(settings.redis))
        keys = None
        if settings.seal_key is not None:
            keys = await stack.enter_async_context(
                open_sealed_keys(settings.redis, settings.seal_key)
            )
        yield QueuedPlans(queue, keys)
