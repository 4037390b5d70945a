"""A server of your own: your authentication in front, the kit's API behind it, a drain at the end."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI
from starlette.types import ASGIApp, Receive, Scope, Send

from kit import Principal, open_kit
from kit.service.api import create_app
from kit.service.limits import Limits
from kit.service.service import Service

DRAIN = 5.0
"""Seconds that running turns get to end once the server is told to."""


class Authenticated:
    """Says in the headers who asks. What a client itself says of that is dropped."""

    def __init__(self, app: ASGIApp, users: Mapping[str, Principal]):
        """`users`: bearer token -> whose it is. Put your own look-up here."""
        self._app = app
        self._users = users

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            token = ""
            headers: list[tuple[bytes, bytes]] = []
            for name, value in scope["headers"]:
                if name == b"authorization":
                    token = value.decode("latin-1").removeprefix("Bearer ")
                elif name not in (b"x-tenant-id", b"x-user-id"):
                    headers.append((name, value))
            user = self._users.get(token)
            if user is not None:
                headers.append((b"x-tenant-id", user.tenant_id.encode()))
                headers.append((b"x-user-id", user.user_id.encode()))
            scope = {**scope, "headers": headers}
        await self._app(scope, receive, send)


def server(users: Mapping[str, Principal], limits: Limits, **options: Any) -> FastAPI:
    """Returns the server; `options` are those of `open_kit`."""
    api = create_app()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
        async with open_kit(**options) as kit:
            api.state.service = Service(kit, limits)
            yield
            await kit.turns.drain(DRAIN)

    app = FastAPI(lifespan=lifespan)
    app.mount("/", Authenticated(api, users))
    return app
