"""The key of a request, while its plan waits for a worker: sealed in Redis, for an hour at most.

AES-GCM under `KIT_SEAL_KEY`; what is sealed for one plan opens for no other.
"""

import base64
import logging
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from coredis import Redis
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from pydantic import SecretStr

from kit.core.documents.document import Plan
from kit.stores.bus.redis_bus import open_redis, send

log = logging.getLogger("kit.worker")
PREFIX = "kit:key:"
LIFETIME = 3600
"""Seconds for which a key is there. A plan that is taken up later waits for its user to bring it again."""
NONCE_BYTES = 12


class SealedKeys:
    """The keys of plans. Its methods raise BusError."""

    def __init__(self, redis: "Redis[str]", seal_key: str):
        """`seal_key`: 64 hexadecimal digits."""
        self._redis = redis
        self._cipher = AESGCM(bytes.fromhex(seal_key))

    async def keep(self, plan: Plan, key: SecretStr) -> None:
        """Seals the key of a plan."""
        nonce = os.urandom(NONCE_BYTES)
        sealed = self._cipher.encrypt(nonce, key.get_secret_value().encode(), _name(plan).encode())
        text = base64.b64encode(nonce + sealed).decode()
        await send(self._redis.set(key_name(plan), text, ex=LIFETIME))

    async def key_of(self, plan: Plan) -> SecretStr | None:
        """Returns the key of a plan; None where there is none, or none that was sealed for it here."""
        text = await send(self._redis.get(key_name(plan)))
        if text is None:
            return None
        sealed = base64.b64decode(text)
        try:
            key = self._cipher.decrypt(
                sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], _name(plan).encode()
            )
        except InvalidTag:
            log.warning("the key of %s was sealed under another KIT_SEAL_KEY", plan.plan_id)
            return None
        return SecretStr(key.decode())

    async def drop(self, plan: Plan) -> None:
        """Lets the key of a plan go."""
        await send(self._redis.delete([key_name(plan)]))


def key_name(plan: Plan) -> str:
    """Returns the key of Redis under which the sealed key of a plan waits."""
    return PREFIX + _name(plan)


def _name(plan: Plan) -> str:
    return f"{plan.owner}/{plan.plan_id}"


@asynccontextmanager
async def open_sealed_keys(url: str, seal_key: str) -> "AsyncGenerator[SealedKeys]":
    """Opens the keys that are sealed in a Redis."""
    async with open_redis(url) as redis:
        yield SealedKeys(redis, seal_key)
