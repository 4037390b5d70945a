"""How much data from outside may hold: so deep, so large, and numbers that every reader can take."""

import hashlib
import json
import math
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Annotated, Any, cast

from pydantic import AfterValidator, Field

DEPTH = 32
"""Lists and objects inside one another."""
SIZE = 1_000_000
"""Characters, keys and values in all."""
MOST_BYTES = 1_000_000
"""Bytes of the body of a request."""
LONGEST_EXCERPT = 100_000
"""Characters that an event keeps of what a tool said."""
LARGEST = 10**50
"""The largest whole number; a longer one is an attack on whoever prints it."""
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]
"""What a server of ASGI runs."""


def excess(value: Any, levels: int = DEPTH) -> str | None:
    """Says what is too much in JSON data: depth, size or a number; None for data within the limits.

    `levels`: lists and objects that may stand inside one another.
    """
    # Level by level and not by recursion, which deep data would break off with an error of its own.
    level: list[Any] = [value]
    size = 0
    for _ in range(levels + 1):
        below: list[Any] = []
        for item in level:
            match item:
                case str():
                    size += len(item) + 1
                case dict():
                    fields = cast("dict[Any, Any]", item)
                    size += len(fields) + 1
                    below += fields
                    below += fields.values()
                case list() | tuple():
                    items = cast("Sequence[Any]", item)
                    size += len(items) + 1
                    below += items
                case int() if abs(item) > LARGEST:
                    return "a number that nobody can hold"
                # JSON knows no infinity and no NaN, though Python reads and writes them.
                case float() if not math.isfinite(item):
                    return "a number that nobody can hold"
                case _:
                    pass
            if size > SIZE:
                return f"more than {SIZE:,} characters and values"
        if not below:
            return None
        level = below
    return f"more than {levels} levels"


def excerpt(text: str) -> str:
    """A text as an event keeps it: whole, or of a longer one its beginning, with its length and its hash.

    What it returns is short enough to be returned as it is by a second call.
    """
    if len(text) <= LONGEST_EXCERPT:
        return text
    digest = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
    note = f"\n[the trace keeps no more of {len(text):,} characters, sha256 {digest}]"
    return text[: LONGEST_EXCERPT - len(note)] + note


def read_json(text: str) -> Any:
    """Returns the value of a JSON text. Raises ValueError for a text that is none, and for one
    nested deeper than can be read."""
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error


def _limited(value: dict[str, Any]) -> dict[str, Any]:
    if problem := excess(value):
        raise ValueError(f"it holds {problem}")
    return value


Data = Annotated[dict[str, Any], AfterValidator(_limited)]
"""An object from outside. A value with more than the limits allow is refused where it is made."""
Count = Annotated[int, Field(ge=0, le=10**12)]
"""Tokens and calls: whoever reports other numbers is not believed."""
Dollars = Annotated[float, Field(ge=0, le=10**9, allow_inf_nan=False)]


class BodyLimit:
    """Refuses a body that is too large, by what it says of its size and by what comes, before the app has any of it."""

    def __init__(self, app: App, most_bytes: int = MOST_BYTES):
        self._app = app
        self._most_bytes = most_bytes

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        for name, value in scope["headers"]:
            if name == b"content-length" and value.isdigit() and int(value) > self._most_bytes:
                await self._refuse(send)
                return
        body = bytearray()
        has_more = True
        while has_more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            body += message.get("body", b"")
            if len(body) > self._most_bytes:
                await self._refuse(send)
                return
            has_more = message.get("more_body", False)
        unread: list[Message] = [{"type": "http.request", "body": bytes(body), "more_body": False}]

        async def receive_read() -> Message:
            if unread:
                return unread.pop()
            return await receive()

        await self._app(scope, receive_read, send)

    async def _refuse(self, send: Send) -> None:
        problem = {"detail": f"the body has more than {self._most_bytes:,} bytes"}
        headers = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": 413, "headers": headers})
        await send({"type": "http.response.body", "body": json.dumps(problem).encode()})
