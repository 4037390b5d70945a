"""The client of a skill service, over MCP: finds skills, describes them, and calls those that a
step of a plan names."""

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar
from urllib.parse import quote

from pydantic import SecretStr, TypeAdapter, ValidationError

from kit.core.errors import LONGEST, BindError, describe_error, field_faults
from kit.core.extra import require
from kit.core.secret import secret_values, without_keys, without_secret_words
from kit.tools.mcp.json_schema import find_schema_fault, json_fault
from kit.tools.mcp.server import McpServer
from kit.tools.mcp.tools import address, session_with
from kit.tools.skill import (
    ALLOWED,
    FENCE,
    FIND,
    IDEMPOTENCY_KEY,
    KEY,
    LOAD,
    STEPS,
    Fence,
    SkillFault,
    SkillManifest,
    SkillReason,
    SkillRefusal,
    SkillResult,
    SkillSummary,
    StepToken,
    canonical_text,
    text_size,
)

if TYPE_CHECKING:
    from kit.tools.mcp.session import McpSession

T = TypeVar("T")
MOST_BYTES = 4_000_000
"""Bytes of one message of a service of skills, where the deck says nothing: a long result goes to a file."""
TENANT = "{tenant_id}"
"""Stands in the URL of a service for the tenant of whoever asks."""
NAME = "skills"
"""What errors call the service's MCP server."""
OpenSession: TypeAlias = "Callable[[str | None], McpSession]"
"""A session with the service, under the key of a step where there is one."""
StepKey: TypeAlias = Callable[[Sequence[str]], Awaitable[str | SkillFault]]
"""Asks the service for a key that opens these skills and no others."""
_SUMMARIES = TypeAdapter(tuple[SkillSummary, ...])
_MANIFEST = TypeAdapter(SkillManifest)
_REFUSAL = TypeAdapter(SkillRefusal)
_STATUS: Mapping[int, SkillReason] = {
    400: "unknown_skill",
    401: "unauthorized",
    403: "unauthorized",
}
"""Why a service gives a step no key."""


class _Session:
    """A session with the service under one key, in the terms of skills."""

    def __init__(self, session: "McpSession", seconds: float, secrets: Sequence[str]):
        self._session = session
        self._seconds = seconds
        self._secrets = secrets
        self.aclose = session.aclose

    async def ask(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        skill: str,
        meta: Mapping[str, Any] | None = None,
    ) -> SkillResult | SkillFault:
        """Calls a tool of the service. Its result has no key in it, and is not yet held against any schema."""
        from kit.tools.mcp.session import SessionFault, text_of

        loop = asyncio.get_running_loop()
        size = text_size(canonical_text(dict(arguments)))
        began = loop.time()
        sent = False

        def fault(reason: SkillReason, detail: str) -> SkillFault:
            return SkillFault(
                skill=skill,
                reason=reason,
                detail=without_keys(without_secret_words(detail, self._secrets))[:LONGEST],
                sent=sent,
                input_size_bytes=size,
                duration_ms=round(1000 * (loop.time() - began)),
            )

        if unfit := json_fault(dict(arguments)):
            return fault("bad_arguments", unfit)
        try:
            async with asyncio.timeout(self._seconds):
                reply: Any = await self._session.connect()
                if reply is None:
                    # To be asked about its skills changes nothing at a service.
                    sent = tool not in (FIND, LOAD)
                    reply = await self._session.ask(tool, dict(arguments), meta)
        except TimeoutError:
            return fault("timeout", f"no answer within {self._seconds:g} s")
        if isinstance(reply, SessionFault):
            return fault(reply.trouble, reply.detail)
        content: dict[str, Any] | None = reply.structured_content
        text = canonical_text(content, text_of(reply))
        if reply.is_error:
            refusal = _read(_REFUSAL, (content or {}).get("error"), skill)
            if isinstance(refusal, SkillFault):
                return fault("failed", text)
            return fault(refusal.type, refusal.message)
        clean_text = without_secret_words(text, self._secrets)
        if clean_text != text:
            text = clean_text
            # The canonical text of structured content is JSON, and stays it: no secret spans two values.
            content = None if content is None else json.loads(text)
        return SkillResult(
            skill=skill,
            content=content,
            text=text,
            size_bytes=text_size(text),
            input_size_bytes=size,
            duration_ms=round(1000 * (loop.time() - began)),
        )


class SkillClient:
    """The skills that one key opens. It belongs to one event loop; any number of calls may run at once."""

    def __init__(
        self,
        session: OpenSession,
        *,
        seconds: float = 30.0,
        secrets: Sequence[str] = (),
        step_key: StepKey | None = None,
    ):
        """`seconds`: what a call may take. `secrets`: what no result and no fault has. `step_key`:
        None where the service gives no keys for steps; then the names of a step's skills travel
        with its calls, and the client alone is sure of them."""
        self._open = session
        self._seconds = seconds
        self._secrets = tuple(secrets)
        self._step_key = step_key
        self._session = self._session_under(None)

    async def find(self, query: str) -> tuple[SkillSummary, ...] | SkillFault:
        """The skills that may fit a task in words, the best first."""
        result = await self._session.ask(FIND, {"query": query}, FIND)
        if isinstance(result, SkillFault):
            return result
        return _read(_SUMMARIES, (result.content or {}).get("skills"), FIND)

    async def load(self, name: str) -> SkillManifest | SkillFault:
        """One skill whole. Nothing of it is pinned: its schemas are checked at each load, to be schemas."""
        result = await self._session.ask(LOAD, {"skill_name": name}, name)
        if isinstance(result, SkillFault):
            return result
        skill = _read(_MANIFEST, result.content, name)
        if isinstance(skill, SkillFault):
            return skill
        fault = await find_schema_fault(skill.input_schema, skill.output_schema)
        if fault:
            detail = f"a schema of it cannot be used: {fault}"
        elif skill.id != name:
            detail = f"the service describes {skill.id} in its place"
        else:
            return skill
        return SkillFault(skill=name, reason="schema_mismatch", detail=detail[:LONGEST])

    @asynccontextmanager
    async def step(self, allowed: Collection[str], fence: Fence) -> "AsyncGenerator[StepClient]":
        """Narrows the skills to those that a step names, until the end of the block. The service
        hears of it with a call."""
        names = sorted(allowed)
        async with AsyncExitStack() as sessions:
            yield StepClient(names, fence, partial(self._step_session, names, sessions))

    async def _step_session(
        self, allowed: Sequence[str], sessions: AsyncExitStack
    ) -> _Session | SkillFault:
        """Returns a session for these skills, or why the service gives none; `sessions` ends it."""
        if self._step_key is None:
            return self._session
        key = await self._step_key(allowed)
        if isinstance(key, SkillFault):
            return key
        session = self._session_under(key)
        sessions.push_async_callback(session.aclose)
        return session

    async def aclose(self) -> None:
        """Ends the session, and the service's process where it is run as a command."""
        await self._session.aclose()

    def _session_under(self, key: str | None) -> _Session:
        secrets = (*self._secrets, key) if key else self._secrets
        return _Session(self._open(key), self._seconds, secrets)


class StepClient:
    """Calls the skills that one step names. Others are refused here, and by the service, which is
    told the names as well."""

    def __init__(
        self,
        allowed: Sequence[str],
        fence: Fence,
        session: Callable[[], Awaitable[_Session | SkillFault]],
    ):
        """`session`: a new one for these skills."""
        self._allowed = allowed
        self._fence = fence.model_dump()
        self._new_session = session
        self._idle = list[_Session]()
        """Sessions in which the last call went well. No two calls share one, so that none fails of
        what befalls the other."""

    async def call(
        self, skill: str, arguments: Mapping[str, Any], idempotency_key: str
    ) -> SkillResult | SkillFault:
        """Calls a skill. Whatever goes wrong is a value."""
        if skill not in self._allowed:
            return SkillFault(
                skill=skill, reason="skill_not_allowed", detail="this step does not name it"
            )
        session = self._idle.pop() if self._idle else await self._new_session()
        if isinstance(session, SkillFault):
            return session.replace(skill=skill)
        meta = {IDEMPOTENCY_KEY: idempotency_key, ALLOWED: list(self._allowed), FENCE: self._fence}
        result = await session.ask(skill, arguments, skill, meta)
        # A session in which a call failed may be lost; the next call gets another.
        if isinstance(result, SkillResult):
            self._idle.append(session)
        return result


class HttpSkillService:
    """A service that is called at a URL. Each request has a client of its own, at the address of its
    tenant and under its own key."""

    def __init__(self, service: McpServer, folder: Path, environment: Mapping[str, str]):
        """`environment`: what the service may be told (`variables_of`). Raises what `skill_client` raises."""
        self._service = service
        self._folder = folder
        self._environment = environment
        self.needs_key = _lacks_key(service, environment)
        # What is wrong with the service's entry is said when a kit opens, not in somebody's turn.
        stand_in = "none" if self.needs_key else None
        skill_client(_of_tenant(service, "tenant"), folder, environment, stand_in)

    @asynccontextmanager
    async def client(self, tenant_id: str, key: SecretStr | None) -> AsyncGenerator[SkillClient]:
        """Gives a request its own client. Raises BindError for a tenant that no URL can name."""
        service = _of_tenant(self._service, tenant_id)
        own_key = key.get_secret_value() if key is not None else None
        client = skill_client(service, self._folder, self._environment, own_key)
        try:
            yield client
        finally:
            await client.aclose()


def _of_tenant(service: McpServer, tenant_id: str) -> McpServer:
    """Returns the service at the address of a tenant, where its URL has a place for one."""
    if service.url is None or TENANT not in service.url:
        return service
    # Quoted, a dot stays a dot, and these two would lead out of the tenant's part of the service.
    if tenant_id in ("", ".", ".."):
        raise BindError(f"tenant {tenant_id!r} cannot stand in the URL of a skill service")
    url = service.url.replace(TENANT, quote(tenant_id, safe=""))
    return service.model_copy(update={"url": url})


def _lacks_key(service: McpServer, environment: Mapping[str, str]) -> bool:
    """Whether the header that carries the key names a variable that is not set."""
    for name, text in service.headers.items():
        if name.lower() != KEY.lower():
            continue
        for variable in Template(text).get_identifiers():
            if not environment.get(variable, "").strip():
                return True
    return False


def chosen_service(deck: McpServer | None, url: str | None) -> McpServer | None:
    """The skill service that is used: the environment's where SKILL_SERVICE_URL names one, else the
    deck's. `{tenant_id}` in a URL stands for the tenant of whoever asks."""
    if url:
        return McpServer(url=url, headers={KEY: "$SKILL_SERVICE_KEY"})
    return deck


def skill_client(
    service: McpServer, folder: Path, environment: Mapping[str, str], key: str | None = None
) -> SkillClient:
    """A client of a service that is run in a folder, or called; nothing is started or called before
    the first question.

    `environment`: what the service may be told (`variables_of`). `key`: that of a request, in the
    place of the one that the service's headers name. Raises KitError for a variable that is unset,
    a key that belongs elsewhere, a missing package.
    """
    if "most_bytes" not in service.model_fields_set:
        service = service.model_copy(update={"most_bytes": MOST_BYTES})
    if not service.url:
        session = session_with(NAME, service, folder, environment)
        return SkillClient(
            lambda _: session,
            seconds=service.timeout_ms / 1000,
            secrets=_secrets(service, environment, {}),
        )
    require("mcp", "mcp")
    from kit.tools.mcp.session import McpSession
    from kit.tools.mcp.transport import http_transport

    if key:
        # Headers are templates, in which a dollar sign would begin the name of a variable.
        headers = _with_key(service.headers, key.replace("$", "$$"))
        service = service.model_copy(update={"headers": headers})
    url, headers = address(NAME, service, environment)
    base = url.rstrip("/").removesuffix("/mcp")

    def session_under(step: str | None) -> McpSession:
        step_headers = _with_key(headers, step) if step else headers
        return McpSession(NAME, service, partial(http_transport, f"{base}/mcp", step_headers))

    return SkillClient(
        session_under,
        seconds=service.timeout_ms / 1000,
        secrets=_secrets(service, environment, headers),
        step_key=partial(_step_key, f"{base}/{STEPS}", headers, service.most_bytes),
    )


def _secrets(
    service: McpServer, environment: Mapping[str, str], headers: Mapping[str, str]
) -> Sequence[str]:
    """What no result and no fault has: the longest first, as one may be a part of another."""
    values: dict[str, str] = {}
    for name in service.variables:
        if name in environment:
            values[name] = environment[name]
    return sorted(secret_values(values, headers), key=len, reverse=True)


def _with_key(headers: Mapping[str, str], key: str) -> Mapping[str, str]:
    """The same headers with this key in the place of theirs."""
    # Names of headers are the same in upper and lower case, so a deck's own spelling would go along.
    others = {name: text for name, text in headers.items() if name.lower() != KEY.lower()}
    return {**others, KEY: key}


async def _step_key(
    url: str, headers: Mapping[str, str], most_bytes: int, allowed: Sequence[str]
) -> str | SkillFault:
    """Asks the service for the key of a step."""
    from kit.tools.mcp.transport import TooLarge, post

    fault = SkillFault(skill=STEPS, reason="gone", sent=False)
    try:
        status, body = await post(url, headers, {"allowed_skills": list(allowed)}, most_bytes)
    # TimeoutError is an OSError, so it comes before.
    except TimeoutError as error:
        return fault.replace(reason="timeout", detail=describe_error(error))
    except TooLarge as error:
        return fault.replace(reason="oversized", detail=describe_error(error))
    except OSError as error:
        return fault.replace(detail=describe_error(error))
    fault = fault.replace(sent=True)
    if status != 201:
        detail = f"the service gave the step no key (HTTP {status})"
        return fault.replace(reason=_STATUS.get(status, "failed"), detail=detail)
    try:
        return StepToken.model_validate_json(body).token
    except ValidationError as error:
        # Its words quote the token.
        return fault.replace(reason="schema_mismatch", detail=type(error).__name__)


def _read(kind: TypeAdapter[T], value: Any, skill: str) -> T | SkillFault:
    """What the service says, where it has the right form."""
    try:
        return kind.validate_python(value)
    except ValidationError as error:
        faults = field_faults(error.errors(), "skills" if skill == FIND else "it")
        detail = f"what the service says of it does not fit: {'; '.join(faults)}"
        return SkillFault(
            skill=skill, reason="schema_mismatch", detail=without_keys(detail)[:LONGEST]
        )
