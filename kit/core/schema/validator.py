"""JSON Schema, compiled once; jsonschema itself is imported when the first schema is."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Validator:
    """A compiled schema."""

    compiled: Any

    def wrong(self, value: Any) -> str | None:
        """What is wrong with a value and where, in one sentence; None when it fits."""
        error = next(iter(self.compiled.iter_errors(value)), None)
        if error is None:
            return None
        return f"{error.json_path}: {error.message}"


def validator(
    schema: Mapping[str, Any], keywords: Mapping[str, Callable[..., Any]] | None = None
) -> Validator:
    """Compiles a schema of the draft of 2020-12; `keywords` join the standard ones, as jsonschema's
    `extend` takes them."""
    from jsonschema import Draft202012Validator
    from jsonschema.validators import extend  # pyright: ignore[reportUnknownVariableType]

    return Validator(
        (extend(Draft202012Validator, keywords) if keywords else Draft202012Validator)(schema)
    )
