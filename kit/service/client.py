"""A client of the API for one user: its turns and plans, typed."""

import asyncio
import uuid
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Self, TypeVar

import httpx
from pydantic import SecretStr, ValidationError

from kit.core.context import Principal
from kit.core.documents.document import AgentEvent, Plan
from kit.core.errors import KitError
from kit.core.event import Event
from kit.core.value import Value
from kit.patterns.plan_execute import PLAN
from kit.service import bodies

V = TypeVar("V", bound=Value)
SILENCE = 60.0
"""Seconds without a byte after which a stream counts as lost: the server sends a comment every 15."""
ATTEMPTS = 7
"""Times in a row that a lost stream is joined again, each after twice the pause of the one before."""


class ServiceError(KitError):
    """What the API refuses, in its own words."""

    def __init__(self, status: int, sentence: str, retry_after: float | None = None):
        self.status = status
        """That of HTTP; 0 where nobody answered."""
        self.retry_after = retry_after
        """Seconds after which the server wants to be asked again."""
        super().__init__(sentence)


class ServiceUnavailable(ServiceError):
    """The server cannot answer now, or cannot be reached."""


def open_http(url: str) -> httpx.AsyncClient:
    """Returns connections to a server: a turn takes as long as it takes, and each stream has one of its own."""
    limits = httpx.Limits(max_connections=None)
    return httpx.AsyncClient(base_url=url, timeout=httpx.Timeout(10, read=None), limits=limits)


def _path_of(name: str) -> str:
    """Returns where a turn or a plan stands."""
    if name.startswith(PLAN):
        return f"/agent/plans/{name}"
    return f"/agent/turns/{name}"


class ServiceClient:
    """A client of one user, closed by `async with`. `key` opens the skill service for what is asked.

    Those of many users share their connections through one `http`, which is whoever's made it to close.
    Its methods raise ServiceError.
    """

    def __init__(
        self,
        url: str,
        principal: Principal,
        key: SecretStr | None = None,
        http: httpx.AsyncClient | None = None,
    ):
        self.url = url
        self.principal = principal
        self._headers = {"X-Tenant-Id": principal.tenant_id, "X-User-Id": principal.user_id}
        self._headers["Content-Type"] = "application/json"
        if key is not None:
            self._headers["X-Api-Key"] = key.get_secret_value()
        self._http = http or open_http(url)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._http.aclose()

    async def run(
        self, session_id: str, message: str, idempotency_key: str | None = None
    ) -> bodies.RunResult:
        """Asks for a turn and waits for its end. With a key the same request may be made again."""
        headers = {} if idempotency_key is None else {"Idempotency-Key": idempotency_key}
        body = self._message(session_id, message, stream=False)
        return await self._ask(bodies.RunResult, "POST", "/agent/run", body, headers=headers)

    def stream(
        self, session_id: str, message: str, idempotency_key: str | None = None
    ) -> "EventStream":
        """Asks for a turn and follows it."""
        # With a key, a connection that is lost before the first event begins no second turn.
        headers = {"Idempotency-Key": idempotency_key or uuid.uuid4().hex}
        body = self._message(session_id, message, stream=True)
        return EventStream(self, "/agent/run", body, headers)

    def _message(self, session_id: str, message: str, *, stream: bool) -> bodies.RunRequest:
        # Unchecked: the server says what does not fit.
        return bodies.RunRequest.model_construct(
            **self.principal.model_dump(), session_id=session_id, message=message, stream=stream
        )

    def follow(self, turn_id: str, from_seq: int = 0) -> "EventStream":
        """Follows a turn, running or ended, from a number on."""
        headers = {"Last-Event-ID": str(from_seq - 1)}
        return EventStream(self, f"/agent/turns/{turn_id}/events", None, headers)

    async def cancel_turn(self, turn_id: str) -> bodies.TurnNow:
        return await self._ask(bodies.TurnNow, "POST", f"/agent/turns/{turn_id}/cancel")

    async def turns(self, session_id: str, limit: int = 10) -> tuple[bodies.TurnSummary, ...]:
        """Returns the turns of a session, the newest first."""
        path = f"/agent/sessions/{session_id}/turns?limit={limit}"
        return (await self._ask(bodies.TurnList, "GET", path)).turns

    async def plans(self, limit: int = 50) -> tuple[bodies.PlanSummary, ...]:
        """Returns the user's plans, the newest first."""
        return (await self._ask(bodies.PlanList, "GET", f"/agent/plans?limit={limit}")).plans

    async def plan(self, plan_id: str) -> Plan:
        return await self._ask(Plan, "GET", f"/agent/plans/{plan_id}")

    async def outputs(self, plan_id: str) -> dict[int, Any]:
        """Returns what the steps of a plan gave that are done, by their numbers."""
        return (
            await self._ask(bodies.PlanOutputs, "GET", f"/agent/plans/{plan_id}/outputs")
        ).outputs

    async def trace(self, plan_id: str) -> tuple[AgentEvent, ...]:
        """Returns what happened in a plan, in order."""
        return (await self._ask(bodies.PlanTrace, "GET", f"/agent/plans/{plan_id}/trace")).events

    async def cancel(self, plan_id: str) -> bodies.PlanNow:
        """Stops a plan; `resume` lets it go on."""
        return await self._ask(bodies.PlanNow, "POST", f"/agent/plans/{plan_id}/cancel")

    def resume(self, name: str) -> "EventStream":
        """Lets a plan go on that was stopped or interrupted, or that waits for a key, or a turn whose process died;
        and follows it."""
        body = bodies.ResumeRequest(stream=True)
        return EventStream(self, f"{_path_of(name)}/resume", body, {})

    def answer(self, name: str, answers: bool | Mapping[str, bool]) -> "EventStream":
        """Answers what a plan or a turn asks, all or by key, and follows it. Of a plan that has asked before it takes
        the name of the turn that asks, or keys."""
        if not isinstance(answers, bool):
            answers = dict(answers)
        body = bodies.AnswerRequest(answers=answers, stream=True)
        return EventStream(self, f"{_path_of(name)}/answer", body, {})

    async def _ask(
        self, kind: type[V], method: str, path: str, body: Value | None = None, **options: Any
    ) -> V:
        async with self.reply(method, path, body, **options) as response:
            return kind.model_validate_json(await response.aread())

    @asynccontextmanager
    async def reply(
        self, method: str, path: str, body: Value | None = None, **options: Any
    ) -> AsyncGenerator[httpx.Response]:
        """Sends a request and yields the reply. Raises ServiceError for a refusal or a lost connection."""
        options["headers"] = {**self._headers, **options.get("headers", {})}
        if body is not None:
            options["content"] = body.model_dump_json()
        try:
            async with self._http.stream(method, path, **options) as response:
                if not response.is_success:
                    await response.aread()
                    raise _refusal(response)
                yield response
        except httpx.TransportError as error:
            words = f"{self.url} does not answer: {error or type(error).__name__}"
            raise ServiceUnavailable(0, words) from error


def _refusal(response: httpx.Response) -> ServiceError:
    status = response.status_code
    try:
        sentence = bodies.Problem.model_validate_json(response.content).detail
    except ValidationError:
        sentence = f"the server answered with status {status}, and without a sentence"
    retry_after = response.headers.get("Retry-After", "")
    seconds = float(retry_after) if retry_after.isdecimal() else None
    kind = ServiceUnavailable if status == 503 else ServiceError
    return kind(status, sentence, seconds)


class EventStream:
    """The events of a turn as they come; once they have ended, `result` says what the turn came to.

    A connection that is lost is joined again after the last event that was read, and whoever begins to
    read once more goes on there. Raises ServiceError.
    """

    def __init__(
        self, client: ServiceClient, path: str, body: Value | None, headers: Mapping[str, str]
    ):
        self.result: bodies.RunResult | None = None
        self._client = client
        self._path = path
        self._body = body
        self._headers = headers

    async def __aiter__(self) -> AsyncGenerator[Event]:
        failures = 0
        while self.result is None:
            try:
                async for kind, data in self._frames():
                    failures = 0
                    if kind == "result":
                        self.result = bodies.RunResult.model_validate_json(data)
                        return
                    event = Event.model_validate_json(data)
                    # From now on the turn is known: it is read on, and not asked for again.
                    self._path = f"/agent/turns/{event.turn_id}/events"
                    self._body = None
                    self._headers = {"Last-Event-ID": str(event.seq)}
                    yield event
                problem = ServiceUnavailable(0, "the stream ended before its turn did")
            except ServiceUnavailable as error:
                problem = error
            failures += 1
            if failures > ATTEMPTS:
                raise problem
            await asyncio.sleep(problem.retry_after or 0.05 * 2**failures)

    async def _frames(self) -> AsyncGenerator[tuple[str, str]]:
        """Yields kind and data of each server-sent event of one connection."""
        method = "GET" if self._body is None else "POST"
        timeout = httpx.Timeout(10, read=SILENCE)
        # httpx would also end a line where JSON may go on, such as at U+2028.
        rest = b""
        async with self._client.reply(
            method, self._path, self._body, headers=self._headers, timeout=timeout
        ) as response:
            async for chunk in response.aiter_bytes():
                *blocks, rest = (rest + chunk).split(b"\n\n")
                for block in blocks:
                    lines = block.decode().split("\n")
                    fields = dict(line.split(": ", 1) for line in lines)
                    if "data" in fields:
                        yield fields["event"], fields["data"]
