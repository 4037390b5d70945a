"""Whether a card's contract can be held at all: every promise the runtime could not keep is a fault of the deck."""

from collections.abc import Iterator, Mapping
from typing import get_args

from kit.compose.answer_schema import schema_faults
from kit.core.card import AgentCard, ToolMode
from kit.core.errors import nearest
from kit.core.model import ModelSpec, fallback_of

_NOT_TEXT = {("shown", kind) for kind in ("integer", "number", "boolean")}
Fault = tuple[tuple[str | int, ...], str]
"""Where in the card, and the sentence with the fix."""


def contract_faults(card: AgentCard, models: Mapping[str, ModelSpec]) -> Iterator[Fault]:
    """Faults of one card's contract."""
    for tool in card.tool_grants:
        if tool not in card.tools:
            yield (
                ("tool_grants", tool),
                f"a grant for {tool!r}, which the card does not list: {nearest(tool, card.tools)}",
            )
    yield from _tool_cases(card)
    if card.handoff.output_schema is not None:
        for sentence in schema_faults(card.handoff.output_schema):
            yield ("handoff", "output_schema"), sentence
    for name in (
        name
        for name, field in card.handoff.fields.items()
        if (field.source, field.type) in _NOT_TEXT
    ):
        yield (
            ("handoff", "fields", name),
            "ids of what was shown are text; make it a string or an array",
        )
    fallback = fallback_of(card, models)
    if card.policy.cost is not None:
        for key in dict.fromkeys((card.model, fallback)):
            spec = models.get(key or "")
            if spec is not None and spec.price(1, 1) is None:
                yield (
                    ("policy", "cost"),
                    f"the price of model {key!r} is not known; give it in models.yaml or limit tokens",
                )
    if card.policy.model_time_ms is not None and fallback is None:
        yield (
            ("policy", "model_time_ms"),
            "it says when to turn to the fallback model; name one in fallback_model",
        )


def _tool_cases(card: AgentCard) -> Iterator[Fault]:
    """A tool that was added later must be evaluated on each way in which it can let the agent down."""
    if card.eval is not None:
        cases = card.eval.tool_cases
    else:
        cases = ()
    for index, case in enumerate(cases):
        place = ("eval", "tool_cases", index)
        if case.tool not in card.tools:
            yield (
                place,
                f"a case for {case.tool!r}, which the card does not list: {nearest(case.tool, card.tools)}",
            )
        if not case.says and not case.never:
            yield place, "any answer would pass this case; give says, never or both"
    pairs = {(case.tool, case.mode) for case in cases}
    for tool in card.tool_grants:
        missing = " or ".join(mode for mode in get_args(ToolMode) if (tool, mode) not in pairs)
        if missing:
            yield (
                ("tool_grants", tool),
                f"{tool!r} is new and no case in eval.tool_cases has mode {missing} for it; add one of each",
            )
