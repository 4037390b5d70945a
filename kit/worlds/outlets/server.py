"""The skill service over MCP: as a server in this process, over standard input and output, and over HTTP with keys."""

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, cast

from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
)
from mcp_types import Tool as McpTool
from pydantic import TypeAdapter, ValidationError
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Receive, Send
from starlette.types import Scope as Connection

from kit.core.value import Value
from kit.tools.skill import ALLOWED, FENCE, IDEMPOTENCY_KEY, KEY, Fence, SkillRefusal, StepToken
from kit.worlds.outlets.access import LIFETIME, Access, Scope
from kit.worlds.outlets.skill_service import SkillFailed, SkillService
from kit.worlds.outlets.wording import text_of

STATUS = {
    "unknown_skill": 404,
    "skill_not_allowed": 403,
    "bad_arguments": 400,
    "key_reused": 409,
    "superseded": 409,
}
"""What a refusal is over plain HTTP."""
Context = ServerRequestContext[Any, Request]
_OBJECT = TypeAdapter(dict[str, Any])


class Step(Value):
    """What a token is asked for with."""

    allowed_skills: tuple[str, ...]


def skill_server(service: SkillService, scope_of: Callable[[Context], Scope]) -> Server[Any]:
    """An MCP server over the service. `scope_of` tells from a request what its caller may see and call."""

    async def list_tools(
        context: Context, params: PaginatedRequestParams | None
    ) -> ListToolsResult:
        return ListToolsResult(
            tools=[McpTool(**tool.model_dump()) for tool in service.tools(scope_of(context))]
        )

    async def call_tool(context: Context, params: CallToolRequestParams) -> CallToolResult:
        meta: Mapping[str, Any] = params.meta or {}
        scope = scope_of(context)
        key = meta.get(IDEMPOTENCY_KEY)
        if isinstance(allowed := meta.get(ALLOWED), list):
            scope = scope.narrowed(map(str, cast("list[object]", allowed)))
        fence = Fence.model_validate(meta[FENCE]) if FENCE in meta else None
        try:
            result = await service.serve(
                scope,
                params.name,
                params.arguments or {},
                key if isinstance(key, str) else None,
                fence,
            )
        except SkillFailed as error:
            return CallToolResult(content=[TextContent(text=str(error))], is_error=True)
        if isinstance(result, SkillRefusal):
            content = {"error": result.model_dump()}
        else:
            content = result
        text = TextContent(text=text_of(params.name, content))
        return CallToolResult(
            content=[text], structured_content=content, is_error="error" in content
        )

    return Server("skills", on_list_tools=list_tools, on_call_tool=call_tool)


async def serve_stdio(service: SkillService, tenant: str) -> None:
    """Serves one tenant over standard input and output until the input ends."""
    server = skill_server(service, lambda context: Scope(tenant))
    async with stdio_server() as (messages, answers):
        await server.run(messages, answers, server.create_initialization_options())


def skill_app(service: SkillService, keys: Mapping[str, str]) -> Starlette:
    """Serves `/api/TENANT/mcp`, `/api/TENANT/skills/ID` and `/api/TENANT/steps` to whoever has the
    tenant's key.

    A POST to `steps` with `{"allowed_skills": [...]}` gives a token that stands in the place of the
    key. `keys`: tenant -> key.
    """
    access = Access(keys)
    manager = StreamableHTTPSessionManager(
        skill_server(service, _scope_of), stateless=True, json_response=True
    )

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncGenerator[None]:
        async with manager.run():
            yield

    async def skill(request: Request) -> Response:
        name = request.path_params["skill"]
        key = request.headers.get("Idempotency-Key")
        try:
            result = await service.serve(request.scope["skills"], name, await _body(request), key)
        except SkillFailed as error:
            return JSONResponse({"error": str(error)}, 500)
        if isinstance(result, SkillRefusal):
            return JSONResponse({"error": result.model_dump()}, STATUS[result.type])
        return JSONResponse(result)

    async def step(request: Request) -> Response:
        scope: Scope = request.scope["skills"]
        if scope.allowed is not None:
            return JSONResponse({"error": "a token makes no token"}, 403)
        try:
            names = Step.model_validate_json(await request.body()).allowed_skills
        except ValidationError as error:
            return JSONResponse(
                {"error": error.errors(include_url=False, include_context=False)[0]["msg"]}, 400
            )
        if unknown := [name for name in names if name not in service.manifests(scope)]:
            return JSONResponse({"error": f"there is no skill {unknown[0]!r}"}, 400)
        return JSONResponse(
            StepToken(token=access.narrow(scope, names), expires_in=LIFETIME).model_dump(), 201
        )

    routes = [
        Route("/mcp", StreamableHTTPASGIApp(manager)),
        Route("/skills/{skill}", skill, methods=["POST"]),
        Route("/steps", step, methods=["POST"]),
    ]
    guard = Middleware(_Guard, access=access)
    return Starlette(
        routes=[Mount("/api/{tenant}", routes=routes, middleware=[guard])], lifespan=lifespan
    )


def _scope_of(context: Context) -> Scope:
    """What the key of the HTTP request that carries a message opens."""
    assert context.request is not None, "every message over HTTP has its request"
    return context.request.scope["skills"]


async def _body(request: Request) -> dict[str, Any]:
    """The JSON object of a request; empty where there is none."""
    try:
        return _OBJECT.validate_json(await request.body())
    except ValidationError:
        return {}


class _Guard:
    """Lets a request through with what its key opens at the tenant's URL, and answers 401 where that is nothing."""

    def __init__(self, app: ASGIApp, access: Access):
        self._app = app
        self._access = access

    async def __call__(self, connection: Connection, receive: Receive, send: Send) -> None:
        request = Request(connection)
        scope = self._access.scope(request.path_params["tenant"], request.headers.get(KEY, ""))
        if scope is None:
            reply = JSONResponse(
                {"error": "this key opens nothing here"}, 401, {"WWW-Authenticate": KEY}
            )
            return await reply(connection, receive, send)
        await self._app({**connection, "skills": scope}, receive, send)
