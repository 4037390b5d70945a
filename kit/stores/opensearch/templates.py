"""The index templates of the five kinds, made from the classes of documents: no field that these lack."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from kit.core.documents.document import EXTENSIONS, AgentEvent, AgentSession, Memory, Plan, Soul
from kit.core.value import Value
from kit.stores.opensearch.address import Address

MEMORY = "agent_memory"
SOULS = "agent_souls"
SESSIONS = "agent_sessions"
PLANS = "agent_plans"
EVENTS = "agent_events"
KINDS: Mapping[str, type[Value]] = {
    MEMORY: Memory,
    SOULS: Soul,
    SESSIONS: AgentSession,
    PLANS: Plan,
    EVENTS: AgentEvent,
}
"""Index -> what its documents are."""
DEEPEST = 500
"""Lists and objects in each other that a value may have; OpenSearch alone would allow 20."""


def template_of(kind: str, address: Address) -> dict[str, Any]:
    """Returns the body of an index template. Its `_meta` tells one of this kit from an earlier one's."""
    template: dict[str, Any] = {
        "settings": {
            "index.number_of_shards": 1,
            "index.auto_expand_replicas": "0-1",
            "index.refresh_interval": address.refresh,
            "index.mapping.depth.limit": DEEPEST,
            "index.knn": kind == MEMORY,
        },
        "mappings": mapping_of(KINDS[kind], address.dimension),
    }
    name = address.prefix + kind
    patterns = [name, f"{name}-*"]
    if kind == EVENTS:
        # Days have indices of their own, which people and dashboards find behind one name.
        patterns = [f"{name}-*"]
        template["aliases"] = {name: {}}
    digest = hashlib.sha256(json.dumps(template).encode()).hexdigest()
    return {
        "index_patterns": patterns,
        "priority": 100 + len(name),
        "template": template,
        "_meta": {"digest": digest},
    }


def mapping_of(kind: type[Value], dimension: int) -> dict[str, Any]:
    """Returns the strict mapping of a kind of document."""
    schema = kind.model_json_schema()
    return {
        "dynamic": "strict",
        "properties": _properties(schema, schema.get("$defs", {}), dimension),
    }


def _properties(
    schema: Mapping[str, Any], inner: Mapping[str, Any], dimension: int
) -> dict[str, Any]:
    extensions = EXTENSIONS.get(schema["title"], ())
    properties: dict[str, Any] = {}
    for name, field in schema["properties"].items():
        reference = _find(field, "$ref")
        if reference:
            document = inner[reference.rpartition("/")[2]]
            properties[name] = {
                "type": "nested" if field.get("type") == "array" else "object",
                "properties": _properties(document, inner, dimension),
            }
            continue
        index = _find(field, "index")
        match index:
            case "object":
                properties[name] = {"type": "object", "enabled": False}
            case "date":
                properties[name] = {"type": "date", "format": "epoch_second"}
            case "knn_vector":
                properties[name] = {
                    "type": "knn_vector",
                    "dimension": dimension,
                    "method": {"name": "hnsw", "engine": "lucene", "space_type": "cosinesimil"},
                }
            # Sizes in bytes, and places in a log, outgrow 32 bits.
            case "integer" if name in extensions:
                properties[name] = {"type": "long"}
            case _:
                properties[name] = {"type": index}
    return properties


def _find(field: Mapping[str, Any], name: str) -> str:
    """Returns what a field's schema says under a name, wherever `| None` or a tuple has put it; empty for nothing."""
    inner = [*field.get("anyOf", ()), field.get("items", {})]
    if name in field:
        return field[name]
    for schema in inner:
        if schema and _find(schema, name):
            return _find(schema, name)
    return ""
