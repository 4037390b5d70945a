"""A chat over HTTP: turns as server-sent events, limits for each tenant, a stop when the client leaves, a drain at the end."""

import json
import math
import time
from collections import Counter, defaultdict, deque
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Annotated, Any

from fastapi import Depends, FastAPI, HTTPException, Request
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field

from kit import Kit, Principal, Turn, open_kit
from kit.core.errors import ClosedError, SessionError

SHOWN = ("text", "text_replaced", "status_line", "component")
"""The events that people read; all others are for the trace."""
DRAIN = 10.0
"""Seconds that running turns get to end once the server is told to."""


class Question(BaseModel):
    """The body of a request. Who asks is never in it."""

    session_id: str = Field(pattern=r"^[\w-]{1,64}$")
    message: str = Field(min_length=1, max_length=8000)


@dataclass
class Tenants:
    """How many turns a tenant may have at once, and begin in a minute. One process counts its own."""

    at_once: int = 4
    per_minute: int = 60
    clock: Callable[[], float] = time.monotonic
    running: Counter[str] = field(default_factory=Counter[str])
    begun: defaultdict[str, deque[float]] = field(default_factory=lambda: defaultdict(deque))

    def wait(self, tenant: str) -> float:
        """Returns the seconds until this tenant may begin another turn; 0 for now."""
        begun, now = self.begun[tenant], self.clock()
        while begun and begun[0] <= now - 60:
            begun.popleft()
        if self.running[tenant] >= self.at_once:
            return 1.0
        return begun[0] + 60 - now if len(begun) >= self.per_minute else 0.0

    def count(self, tenant: str, turn: Turn) -> None:
        """Counts a turn until it ends."""
        self.begun[tenant].append(self.clock())
        self.running[tenant] += 1
        turn.on_end(lambda: self.running.subtract([tenant]))


def caller(request: Request) -> Principal:
    """Returns who asks: put your own authentication here. These headers are for a proxy that sets them and drops the client's."""
    tenant, user = request.headers.get("x-tenant"), request.headers.get("x-user")
    if not tenant or not user:
        raise HTTPException(401, "say who asks")
    return Principal(tenant_id=tenant, user_id=user)


async def frames(turn: Turn) -> AsyncGenerator[str, None]:
    """Yields what people read of a turn as server-sent events, then its end. A client that leaves stops the turn."""
    try:
        async for event in turn:
            if event.kind in SHOWN:
                yield frame(event.kind, event.body.model_dump(mode="json", exclude={"kind"}) | {"seq": event.seq})
        reply = await turn
        yield frame("reply", {"turn_id": reply.turn_id, "status": reply.status, "text": reply.text, "saved": reply.saved})
    finally:
        turn.cancel()  # one that has ended takes no notice


def frame(kind: str, data: dict[str, Any]) -> str:
    """Returns one server-sent event."""
    return f"event: {kind}\ndata: {json.dumps(data)}\n\n"


def create_app(tenants: Tenants, **options: Any) -> FastAPI:
    """Returns the server; `options` are those of `open_kit`."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncGenerator[None, None]:
        async with open_kit(**options) as kit:
            app.state.kit = kit
            yield
            await kit.turns.drain(DRAIN)

    app = FastAPI(lifespan=lifespan)

    @app.post("/turns")
    async def begin(question: Question, who: Annotated[Principal, Depends(caller)], request: Request) -> StreamingResponse:
        if seconds := tenants.wait(who.tenant_id):
            raise HTTPException(429, "too many turns", {"Retry-After": str(math.ceil(seconds))})
        kit: Kit = request.app.state.kit
        try:
            turn = kit.ask(question.message, kit.session(question.session_id, who.tenant_id, who.user_id))
        except SessionError:  # somebody else's: for this caller there is no such session
            raise HTTPException(404, "no such session") from None
        except ClosedError:
            raise HTTPException(503, "closing", {"Retry-After": "5"}) from None
        tenants.count(who.tenant_id, turn)
        return StreamingResponse(frames(turn), media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})

    return app
