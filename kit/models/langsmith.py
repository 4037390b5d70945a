"""Keeps LangSmith from hearing of model calls: LangChain sends it every one where the environment asks for tracing."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager

from langsmith.run_helpers import tracing_context  # type: ignore[reportUnknownVariableType]

VARIABLES = (
    "LANGSMITH_TRACING",
    "LANGSMITH_TRACING_V2",
    "LANGCHAIN_TRACING",
    "LANGCHAIN_TRACING_V2",
)
"""The environment variables that ask LangChain to send its runs to LangSmith."""


def asks_for_langsmith(environment: Mapping[str, str]) -> str | None:
    """The variable of an environment that asks for tracing; None where none does."""
    for name in VARIABLES:
        if environment.get(name) == "true":
            return name
    return None


@contextmanager
def langsmith_hears(allowed: bool) -> Generator[None]:
    """Inside, LangSmith hears of no model and no tool call, whatever the environment asks for, unless it is allowed.

    A context variable of LangSmith's own holds this, so other code of the process keeps its tracing. So does
    whoever asks in code, with LangChain's `tracing_v2_enabled()`.
    """
    if allowed:
        yield
        return
    with tracing_context(enabled=False):
        yield
