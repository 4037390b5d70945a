"""What a system says of itself in OpenTelemetry spans under the GenAI conventions, heard turn by turn."""

from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor, TracerProvider
from opentelemetry.trace import StatusCode

from kit.bridges.part import Called
from kit.core.model import ModelSpec
from kit.core.outcome import Usage, total

_OF_MODELS = ("chat", "text_completion", "generate_content")
"""Operations that are calls of a model."""
_TOKENS = {
    "input_tokens": ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens"),
    "output_tokens": ("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens"),
}
"""Field of a usage -> its attribute, and that of earlier versions of the conventions."""
_NANOSECONDS = 1e9
_spans_of_turn: ContextVar[list[ReadableSpan] | None] = ContextVar("_spans_of_turn", default=None)


class _TurnSpans(SpanProcessor):
    """Gives each span that ends to the turn in which it, or its parent, has begun."""

    def __init__(self) -> None:
        self._turns: dict[int, list[ReadableSpan]] = {}

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        spans = _spans_of_turn.get()
        if spans is None and span.parent is not None:
            # A thread of the framework's own knows no context of ours.
            spans = self._turns.get(span.parent.span_id)
        if spans is not None:
            self._turns[span.get_span_context().span_id] = spans

    def on_end(self, span: ReadableSpan) -> None:
        context = span.context
        spans = self._turns.pop(context.span_id, None) if context else None
        if spans is not None:
            spans.append(span)


_processor = _TurnSpans()
_heard_providers: list[TracerProvider] = []


@contextmanager
def turn_spans() -> Generator[list[ReadableSpan]]:
    """The spans that end while it is open, of work that begins in it."""
    provider = trace.get_tracer_provider()
    if not isinstance(provider, TracerProvider):
        # Where nobody has set one, the conventions' spans go nowhere.
        provider = TracerProvider()
        trace.set_tracer_provider(provider)
    if provider not in _heard_providers:
        _heard_providers.append(provider)
        provider.add_span_processor(_processor)
    spans: list[ReadableSpan] = []
    token = _spans_of_turn.set(spans)
    try:
        yield spans
    finally:
        _spans_of_turn.reset(token)


def calls_of(spans: Iterable[ReadableSpan]) -> list[Called]:
    """The agents and tools that were called, in the order in which they began.

    The first agent that begins, and is part of no other, is the system itself.
    """
    entries: list[tuple[int, Called]] = []
    has_agent = False
    for span in spans:
        attributes = _attributes(span)
        match attributes.get("gen_ai.operation.name"):
            case "invoke_agent":
                kind = "agent"
                has_agent = True
                name = attributes.get("gen_ai.agent.name")
            case "execute_tool":
                kind = "tool"
                name = attributes.get("gen_ai.tool.name")
            case _:
                continue
        fault = None
        if span.status.status_code is StatusCode.ERROR:
            fault = span.status.description or "an error"
        seconds = ((span.end_time or 0) - (span.start_time or 0)) / _NANOSECONDS
        call = Called(str(name or span.name), kind, seconds=seconds, fault=fault)
        entries.append((span.start_time or 0, call))
    entries.sort(key=lambda entry: entry[0])
    calls: list[Called] = []
    is_root_seen = not has_agent
    for _, call in entries:
        if call.kind == "agent" and not is_root_seen:
            is_root_seen = True
            continue
        calls.append(call)
    return calls


def usage_of(spans: Iterable[ReadableSpan], prices: Mapping[str, ModelSpec]) -> Usage | None:
    """What was spent, by the spans of model calls, else by those of agents that are part of no other.

    None where no span says anything of it; a field is set only where it is known of every call, a
    cost only where each model has a known price.
    """
    every = list(spans)
    of_models = [
        span for span in every if _attributes(span).get("gen_ai.operation.name") in _OF_MODELS
    ]
    usages: list[Usage] = []
    is_whole = True
    for span in of_models or _outermost(every):
        tokens = _tokens(span)
        if tokens:
            usages.append(_with_price(Usage.model_validate(tokens), span, prices))
        elif span.status.status_code is not StatusCode.ERROR:
            is_whole = is_whole and not of_models
    fields: dict[str, Any] = {}
    if of_models:
        fields["model_calls"] = len(of_models)
    # A sum that a part is missing from is not what was spent.
    if usages and is_whole:
        summed = total(usages)
        fields["input_tokens"] = summed.input_tokens
        fields["output_tokens"] = summed.output_tokens
        if all(usage.cost is not None for usage in usages):
            fields["cost"] = summed.cost
    return Usage(**fields) if fields else None


def _outermost(spans: list[ReadableSpan]) -> list[ReadableSpan]:
    """Those with tokens whose parent has none: an agent's tokens hold those of what it asked."""
    with_tokens: set[int] = set()
    for span in spans:
        if span.context is not None and _tokens(span):
            with_tokens.add(span.context.span_id)
    outermost: list[ReadableSpan] = []
    for span in spans:
        if span.parent is None or span.parent.span_id not in with_tokens:
            outermost.append(span)
    return outermost


def _tokens(span: ReadableSpan) -> dict[str, int]:
    attributes = _attributes(span)
    tokens: dict[str, int] = {}
    for field, names in _TOKENS.items():
        for name in names:
            count = attributes.get(name)
            if isinstance(count, int) and field not in tokens:
                tokens[field] = count
    return tokens


def _with_price(usage: Usage, span: ReadableSpan, prices: Mapping[str, ModelSpec]) -> Usage:
    attributes = _attributes(span)
    for attribute in ("gen_ai.response.model", "gen_ai.request.model"):
        model = prices.get(str(attributes.get(attribute)))
        if model is not None:
            return usage.replace(cost=model.price(usage.input_tokens, usage.output_tokens))
    return usage


def _attributes(span: ReadableSpan) -> Mapping[str, Any]:
    return span.attributes or {}
