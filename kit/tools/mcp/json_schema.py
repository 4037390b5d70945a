"""Holds a value against a JSON Schema that a server gave; a reference to elsewhere is not followed."""

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from kit.core.errors import describe_error

LONG = 20_000
"""Characters of a schema from which on nobody remembers whether it is one."""


def schema_fault(schema: Mapping[str, Any]) -> str | None:
    """What keeps this from being a schema; None for one that is."""
    text = json.dumps(schema)
    return _known_fault(text) if len(text) < LONG else _schema_fault(text)


def _schema_fault(text: str) -> str | None:
    from jsonschema.exceptions import SchemaError
    from jsonschema.validators import validator_for

    schema = json.loads(text)
    kind: Any = validator_for(schema)
    try:
        kind.check_schema(schema)
    except SchemaError as error:
        return error.message
    return None


_known_fault = lru_cache(maxsize=256)(_schema_fault)
"""A server describes the same tools at each connection, and to check a schema takes milliseconds."""


def json_fault(value: Any) -> str | None:
    """What keeps a value from being sent as JSON, such as half of a surrogate pair; None for one that can be."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        return describe_error(error)
    return None


def first_misfit(schema: Mapping[str, Any], value: Any) -> str | None:
    """The first place where a value breaks a schema, and how; None for a value that fits."""
    from jsonschema.validators import validator_for
    from referencing import Registry

    kind: Any = validator_for(schema)
    fault = next(kind(schema, registry=Registry[Any]()).iter_errors(value), None)
    return f"{fault.json_path}: {fault.message}"[:500] if fault else None
