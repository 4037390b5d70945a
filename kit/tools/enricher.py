"""The one wrapper around every call to the context service: as the principal, verified, and decided by status alone."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar
from zlib import crc32

from pydantic import Field, ValidationError

from kit.core.bodies.call import Envelope
from kit.core.bodies.speech import Status
from kit.core.envelope import EnricherRequest, EnricherResponse, Inbound, compatible, genuine
from kit.core.errors import BindError, UpstreamError
from kit.core.outcome import ComponentPayload, Reason
from kit.core.value import Value
from kit.tools.tool import UNAVAILABLE, ToolContext, ToolLimits, ToolResult, tool_context

if TYPE_CHECKING:
    import httpx
    from langchain_core.tools import BaseTool

LIMITS = ToolLimits(timeout_ms=5000)
"""Of every tool of the context service, where the configuration sets no others."""
PAYLOAD_VERSION = "1.0.0"
"""The payload version the tools are written for; the same major number is understood."""
CAVEAT = "Some sources did not answer, so this may be incomplete."
Reply = EnricherResponse[Any]
C = TypeVar("C", bound=Value)


class Enrich(Protocol):
    """Asks the context service. Raises EnrichError when there is no envelope to look at."""

    async def __call__(self, request: EnricherRequest) -> EnricherResponse[Any]: ...


class EnrichError(UpstreamError):
    """The context service refused, failed, or was not there; `reason` says which, the message is for the trace."""

    def __init__(self, reason: Reason, message: str):
        self.reason: Reason = reason
        super().__init__(message)


class Rendering(NamedTuple):
    """What a tool says, and the rows it speaks of."""

    text: str
    components: tuple[ComponentPayload, ...] = ()


class Wording(NamedTuple):
    """How the payload of one enricher is read, and put into words."""

    payload: type[Inbound]
    render: Callable[[Any], Rendering]


class ToolConfig(Value):
    """What a card, the settings and the flags may set for a tool of the context service."""

    limit: int = Field(default=3, ge=1, le=20)
    """How many rows when the model does not say."""


@dataclass(frozen=True, slots=True)
class EnricherSpec:
    """A tool of the context service, as data."""

    id: str
    description: str
    domain_type: str
    enricher_id: str
    wording: Wording
    properties: Mapping[str, Mapping[str, Any]] = field(
        default_factory=dict[str, Mapping[str, Any]]
    )
    """JSON Schema of each argument; all are optional."""
    statuses: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HttpEnrich:
    """Enrich over HTTP: a socket, or the service in this process."""

    client: "httpx.AsyncClient"

    async def __call__(self, request: EnricherRequest) -> EnricherResponse[Any]:
        """The envelope of one request. Raises EnrichError; what the service wrote goes no further."""
        import httpx

        headers = {
            "content-type": "application/json",
            "x-principal": str(request.principal),
            "x-request-id": request.request_id,
        }
        try:
            response = await self.client.post(
                "/v1/enrich", content=request.model_dump_json(), headers=headers
            )
        except httpx.HTTPError as error:
            is_late = isinstance(error, httpx.TimeoutException)
            reason = "timeout" if is_late else "unavailable"
            raise EnrichError(reason, f"context service: {type(error).__name__}") from error
        if response.status_code == 200:
            return _read(response.content)
        if response.status_code == 403:
            raise EnrichError("principal_mismatch", "context service refused the principal (403)")
        raise EnrichError("unavailable", f"context service answered {response.status_code}")


def _read(body: bytes) -> Reply:
    try:
        return Reply.model_validate_json(body)
    except ValidationError as error:
        fields = sorted(
            {".".join(map(str, fault["loc"])) for fault in error.errors(include_input=False)}
        )
        # From None: pydantic's own words would quote what the service wrote.
        raise EnrichError(
            "contract_violation", f"envelope cannot be read: {', '.join(fields)}"
        ) from None


def enricher_tool(
    spec: EnricherSpec, enrich: Enrich, config: Mapping[str, Any], key: str | None = None
) -> "BaseTool":
    """A LangChain tool over one enricher; raises BindError for a configuration it does not know.

    With a `key` every envelope must be signed with it; one that is not counts as another principal's.
    """
    settings = read_config(spec.id, config, ToolConfig)

    async def call(**arguments: Any) -> tuple[str, ToolResult]:
        context = tool_context()
        for status in spec.statuses:
            context.emit(Status(agent=context.agent, status=status))
        params = {"limit": settings.limit, **fit_arguments(arguments, spec.properties)}
        if context.inherited.location:
            params.setdefault("location", context.inherited.location)
        result = await _ask(spec, enrich, params, context, key)
        return result.text, result

    return structured(spec.id, spec.description, spec.properties, (), call)


def structured(
    name: str, description: str, properties: Mapping[str, Any], required: tuple[str, ...], call: Any
) -> "BaseTool":
    """A LangChain tool from a plain schema; nothing is generated, so making one costs microseconds."""
    from langchain_core.tools import StructuredTool

    schema = {
        "type": "object",
        "title": name,
        "properties": dict(properties),
        "required": list(required),
    }
    return StructuredTool(
        name=name,
        description=description,
        args_schema=schema,
        coroutine=call,
        response_format="content_and_artifact",
    )


def read_config(tool: str, config: Mapping[str, Any], kind: type[C]) -> C:
    """The configuration of a tool, as a value of its kind. Raises BindError, which names what can be set."""
    try:
        return kind.model_validate(dict(config))
    except ValidationError as error:
        fault = error.errors()[0]
        options = ", ".join((*kind.model_fields, *ToolLimits.model_fields))
        raise BindError(
            f"tool {tool!r}: setting {fault['loc'][0]!r} cannot be used ({fault['msg']}); it knows {options}"
        ) from error


def fit_arguments(
    arguments: Mapping[str, Any], properties: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """The arguments a schema knows, as the types it names; what does not fit is left out, never refused."""
    values: dict[str, Any] = {}
    for name, spec in properties.items():
        value = arguments.get(name)
        # Models fill in what they leave out by nothing, or by an empty text.
        if value is None or value == "":
            continue
        if spec.get("type") != "integer":
            values[name] = str(value)
            continue
        try:
            values[name] = int(float(value))
        except (TypeError, ValueError, OverflowError):
            continue
    return values


async def _ask(
    spec: EnricherSpec,
    enrich: Enrich,
    params: dict[str, Any],
    context: ToolContext,
    key: str | None,
) -> ToolResult:
    # The same arguments make the same id, so that a replay can tell which reply belongs to which call.
    digest = crc32(repr(sorted(params.items())).encode())
    request = EnricherRequest(
        request_id=f"{context.turn_id}/{context.agent}/{spec.id}/{digest:08x}",
        principal=context.inherited.principal,
        domain_type=spec.domain_type,
        enricher_id=spec.enricher_id,
        version=PAYLOAD_VERSION,
        params=params,
    )
    try:
        reply = await enrich(request)
    except EnrichError as error:
        if error.reason == "principal_mismatch":
            _report(context, spec, None)
        return _none(error.reason, str(error))
    proven = genuine(reply, request.request_id, key)
    verified = proven and reply.principal == context.inherited.principal
    _report(context, spec, reply, verified)
    if not proven:
        return _none(
            "principal_mismatch",
            "the reply is not signed with the agreed key; its payload was dropped",
        )
    if not verified:
        return _none(
            "principal_mismatch", "the reply is about another principal; its payload was dropped"
        )
    return _decide(spec, reply)


def _decide(spec: EnricherSpec, reply: Reply) -> ToolResult:
    """What becomes of a verified envelope: the list of failed sources is never looked at."""
    if (reply.domain_type, reply.enricher_id) != (spec.domain_type, spec.enricher_id):
        return _none("contract_violation", f"answered as {reply.domain_type}/{reply.enricher_id}")
    if not compatible(reply.version, PAYLOAD_VERSION):
        return _none(
            "unavailable",
            f"payload version {reply.version} is not understood, {PAYLOAD_VERSION} is",
        )
    if reply.status == "error":
        return _none("unavailable", "envelope status is error")
    try:
        rendering = spec.wording.render(spec.wording.payload.model_validate(reply.payload))
    except ValidationError:
        return _none("contract_violation", "the payload is not of the agreed type")
    if reply.status == "partial":
        text = f"{rendering.text} {CAVEAT}"
        return ToolResult(text=text, components=rendering.components, caveat=CAVEAT)
    return ToolResult(text=rendering.text, components=rendering.components)


def _report(
    context: ToolContext, spec: EnricherSpec, reply: Reply | None, verified: bool = False
) -> None:
    """Says what the envelope said about itself, and nothing of what was in it; a 403 has no
    envelope, yet counts as one."""
    event = Envelope(
        agent=context.agent,
        domain_type=spec.domain_type,
        enricher_id=spec.enricher_id,
        status="error",
        principal_verified=verified,
        principal=context.inherited.principal,
    )
    if reply is not None:
        event = event.replace(
            status=reply.status,
            version=reply.version,
            version_ok=compatible(reply.version, PAYLOAD_VERSION),
            cached=reply.cache_meta.cached,
        )
    context.emit(event)


def _none(fault: Reason, detail: str) -> ToolResult:
    return ToolResult(text=UNAVAILABLE, fault=fault, detail=detail)
