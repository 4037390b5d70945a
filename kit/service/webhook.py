"""Alerts go out to an address of the operator's, signed, and again a few times where it does not answer."""

import asyncio
import hashlib
import hmac
import json
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from pydantic import SecretStr

from kit.core.documents.document import AgentEvent

log = logging.getLogger("kit.monitor")
TRIES = 4
PAUSE = 1.0
"""Seconds before the second try; each later one waits twice as long as the one before."""
PATIENCE = 5.0
"""Seconds that an answer may take."""
TIMESTAMP = "X-Kit-Timestamp"
SIGNATURE = "X-Kit-Signature"


@dataclass(frozen=True, slots=True)
class Webhook:
    """Where alerts are sent, and the key that signs them."""

    url: SecretStr
    """It may hold a token, so that no log has it."""
    key: SecretStr
    clock: Callable[[], float] = time.time
    pause: float = PAUSE

    async def send(self, event: AgentEvent) -> None:
        """Posts an event of an alert. One that nobody takes is given up after TRIES; the log of events has it."""
        import httpx  # half a tenth of a second, which a monitor without a webhook need not wait

        body = json.dumps(_fields(event)).encode()
        problem = ""
        async with httpx.AsyncClient(timeout=PATIENCE) as client:
            for attempt in range(TRIES):
                if attempt:
                    await asyncio.sleep(self.pause * 2 ** (attempt - 1))
                headers = signed(body, self.key.get_secret_value(), int(self.clock()))
                try:
                    response = await client.post(
                        self.url.get_secret_value(), content=body, headers=headers
                    )
                except httpx.TransportError as error:
                    problem = type(error).__name__
                    continue
                if response.is_success:
                    return
                problem = f"status {response.status_code}"
                # What the other side does not want, it will not want a second time either.
                if response.status_code < 500 and response.status_code != 429:
                    break
        log.error("%s of %s was not told: %s", event.event_type, event.status, problem)


def signed(body: bytes, key: str, timestamp: int) -> dict[str, str]:
    """Returns the headers of a body: its moment, and HMAC-SHA256 over moment, a dot, and body."""
    message = f"{timestamp}.".encode() + body
    digest = hmac.new(key.encode(), message, hashlib.sha256).hexdigest()
    return {
        "Content-Type": "application/json",
        TIMESTAMP: str(timestamp),
        SIGNATURE: f"sha256={digest}",
    }


def _fields(event: AgentEvent) -> dict[str, Any]:
    fields = dict(cast("dict[str, Any]", event.payload))
    del fields["monitor"]
    return {
        "id": event.event_id,
        "event": event.event_type,
        "alert": event.status,
        "tenant_id": event.tenant_id,
        "at": event.ts,
        **fields,
    }
