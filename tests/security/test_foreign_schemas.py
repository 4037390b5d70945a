"""A schema or a result of a server costs its own call: neither is checked or read without end."""

import asyncio
import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from kit.compose.read import read_outline
from kit.core.errors import BindError
from kit.tools.mcp.json_schema import SchemaTooCostly, find_misfit, first_misfit, schema_fault
from kit.tools.mcp.lock import read_lock
from kit.tools.mcp.tools import session_with
from kit.tools.skill import SkillFault
from kit.tools.tool import ToolResult
from kit.worlds.outlets.access import Scope
from kit.worlds.outlets.skill_service import SkillService
from tests.mcp_servers import SERVER, over_http, write_deck
from tests.security.loop_gap import LoopGap
from tests.step_kits import in_memory
from tests.tools.test_mcp_faults import accepted, inside, kit_of, result

LONG = 60.0
"""Seconds of CPU that no check below comes near; without its bound none of them ends within hours."""


def chain(links: int) -> dict[str, Any]:
    """A schema each of whose definitions refers twice to the next."""
    definitions: dict[str, Any] = {f"l{links}": {"type": "object"}}
    for link in range(links):
        definitions[f"l{link}"] = {"allOf": [{"$ref": f"#/$defs/l{link + 1}"}] * 2}
    return {"type": "object", "$ref": "#/$defs/l0", "$defs": definitions}


def wide_chain(links: int) -> dict[str, Any]:
    """The same over properties: whoever replaces each reference by its target writes 20 ** links places."""
    definitions: dict[str, Any] = {f"l{links}": {"type": "object"}}
    for link in range(links):
        names = {f"p{number}": {"$ref": f"#/$defs/l{link + 1}"} for number in range(20)}
        definitions[f"l{link}"] = {"properties": names}
    return {"type": "object", "$ref": "#/$defs/l0", "$defs": definitions}


def deep(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


DOUBLING: dict[str, Any] = {
    "type": "object",
    "allOf": [{"properties": {"x": {"$ref": "#"}}}, {"properties": {"x": {"$ref": "#"}}}],
}
"""A schema with few places that checks each level of a value twice as often as the one above."""
SELF = {"type": "object", "$ref": "#/$defs/a", "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}]}}}
WIDE = {"type": "object", "properties": {f"p{n}": {"type": "string"} for n in range(10_000)}}
COSTLY: Mapping[str, tuple[Mapping[str, Any], str]] = {
    "two references in a chain of 18 links": (chain(18), "more than 5,000 places"),
    "a chain of properties": (wide_chain(8), "more than 5,000 places"),
    "10,000 properties": (WIDE, "at most 200,000 are read"),
    "80 levels": (deep(40), "more than 64 levels"),
    "a reference in a circle": (SELF, "refers to itself without end"),
}
"""Schema, and what is said of it."""


def with_input(schema: Mapping[str, Any]) -> str:
    """The server of the tests, with another schema of its tool's arguments."""
    old = '"inputSchema": {"type": "object", "properties": FIELDS}'
    assert old in SERVER
    return SERVER.replace(old, f'"inputSchema": json.loads({json.dumps(schema)!r})')


def nested(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(levels):
        value = {"x": value}
    return value


async def called(folder: Path) -> ToolResult:
    """Calls the tool of an accepted deck outside of any turn, whose budgets a busy machine may use up."""
    server = read_outline(folder).settings.mcp["shop"]
    environment = {"PATH": os.environ["PATH"]}
    session = session_with("shop", server, folder, environment, read_lock(folder)["shop"])
    try:
        await session.open()
        return await session.call("stock", {"product": "tea"})
    finally:
        await session.aclose()


@pytest.mark.req("K-1")
@pytest.mark.parametrize("case", COSTLY)
@pytest.mark.realtime
async def test_a_server_with_a_schema_that_nobody_can_afford_is_not_accepted(
    case: str, tmp_path: Path
):
    schema, words = COSTLY[case]
    deck = write_deck(tmp_path, with_input(schema), most_bytes=8_000_000)
    before = time.process_time()
    async with LoopGap() as gap:
        with pytest.raises(BindError, match=words):
            await accepted(deck)
    assert time.process_time() - before < LONG
    print(f"{case}: loop silent {gap.longest:.3f} s")


@pytest.mark.req("AS-32")
@pytest.mark.parametrize(
    ("which", "value", "words"),
    [
        ("input_schema", chain(18), "more than 5,000 places"),
        ("output_schema", wide_chain(8), "more than 5,000 places"),
        ("input_schema", {"type": "no such type"}, ""),
        ("id", "outlet_menu", ""),
    ],
)
async def test_a_skill_with_such_a_schema_or_another_name_is_a_fault_of_its_service(
    which: str, value: object, words: str
):
    service = SkillService()
    honest = service.call

    def lie(scope: Scope, name: str, arguments: Mapping[str, Any], key: str | None = None) -> Any:
        answer: Any = honest(scope, name, arguments, key)
        return {**answer, which: value} if name == "load_skill" else answer

    service.call = lie
    before = time.process_time()
    async with in_memory(service) as client:
        refused = await client.load("outlet_list")
    assert isinstance(refused, SkillFault) and refused.reason == "schema_mismatch"
    assert words in refused.detail and time.process_time() - before < LONG


ITSELF = {"$ref": "#/properties/product"}


@pytest.mark.req("K-1")
@pytest.mark.parametrize(
    "schema",
    [
        {"dependentSchemas": {"product": {"$ref": "#"}}},
        {"properties": {"product": {"allOf": [ITSELF, ITSELF]}}},
        {"properties": {"product": {"not": ITSELF}}},
        {
            "properties": {"product": {"$ref": "#/$defs/a"}},
            "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/b"}]}, "b": {"$ref": "#/$defs/a"}},
        },
    ],
    ids=str,
)
@pytest.mark.realtime
async def test_a_call_whose_schema_refers_in_a_circle_is_refused_in_plain_words(
    schema: Mapping[str, Any], tmp_path: Path
):
    deck = await accepted(write_deck(tmp_path, with_input({"type": "object", **schema})))
    async with kit_of(deck) as kit:
        end = await result(kit)
    assert end == (
        "contract_violation: the input schema of shop.stock: it refers to itself without end"
    )


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"x": {"$ref": "#"}}},
        {"items": {"anyOf": [{"type": "string"}, {"$ref": "#"}]}},
        {"allOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}], "$defs": {"a": {}}},
        {"properties": {"allOf": {"$ref": "#"}}},
        {"default": {"$ref": "#"}},
    ],
    ids=str,
)
def test_a_schema_whose_references_lead_a_level_down_is_read(schema: Mapping[str, Any]):
    assert schema_fault(schema) is None and first_misfit(schema, nested(40)) is None


@pytest.mark.req("AS-32")
def test_each_place_of_a_pattern_is_matched_in_linear_time():
    word = "a" * 60 + "!"
    before = time.process_time()
    for schema, value in (
        ({"type": "string", "pattern": "^(a+)+$"}, word),
        ({"patternProperties": {"^(a+)+$": {}}, "additionalProperties": False}, {word: 1}),
        ({"type": "array", "items": {"type": "string", "pattern": "(a|a)*$"}}, [word]),
    ):
        assert schema_fault(schema) is None
        first_misfit(schema, value)
    assert time.process_time() - before < LONG


@pytest.mark.req("K-1", "AS-32")
@pytest.mark.realtime
async def test_a_pattern_that_cannot_be_linear_is_refused_with_its_words(tmp_path: Path):
    words = "is not one that RE2 takes, and no other is run"
    for pattern in ("(?=a)b", r"(a)\1", "(a{1000}){1000}", "("):
        for schema in ({"pattern": pattern}, {"patternProperties": {pattern: {}}}):
            assert words in str(schema_fault({"type": "object", "properties": {"a": schema}}))
        hidden = {"$ref": "#/elsewhere", "elsewhere": {"pattern": pattern}}
        with pytest.raises(SchemaTooCostly, match=words):
            first_misfit(hidden, "aaa")
    takes = {"type": "object", "properties": {"a": {"pattern": "(?=a)b"}}}
    with pytest.raises(BindError, match=words):
        await accepted(write_deck(tmp_path, with_input(takes)))


@pytest.mark.req("K-1")
@pytest.mark.realtime
async def test_a_result_that_takes_too_many_steps_to_check_is_a_fault_of_its_call(
    tmp_path: Path,
):
    with_output = SERVER.replace(
        '"inputSchema"', f'"outputSchema": json.loads({json.dumps(DOUBLING)!r}), "inputSchema"'
    )
    text = with_output.replace(
        'on shelf 7."}]}',
        f'on shelf 7."}}], "structuredContent": json.loads({json.dumps(nested(40))!r})}}',
    )
    end = await called(await accepted(write_deck(tmp_path, text)))
    assert end.fault == "contract_violation" and "more than 500,000 steps" in str(end.detail)


@pytest.mark.req("K-1")
@pytest.mark.realtime
@pytest.mark.parametrize(("size", "at_once"), [(10, True), (20_000, False)])
async def test_a_large_value_is_held_against_its_schema_beside_the_loop(size: int, at_once: bool):
    """A check on the loop has ended before anything else of the loop runs."""
    schema = {"items": {"type": "integer", "minimum": 0}}
    check = asyncio.create_task(find_misfit(schema, [7] * size))
    await asyncio.sleep(0)
    assert check.done() is at_once
    assert await check is None


MANY_PARTS = "return {'content': [{'type': 'text', 'text': ''}] * 30_000}"


@pytest.mark.req("K-1")
@pytest.mark.realtime
async def test_a_result_of_many_parts_is_cut_off_before_an_object_is_made_of_each(
    tmp_path: Path,
):
    text = inside(MANY_PARTS)
    with over_http(text) as (url, _):
        deck = write_deck(tmp_path, text, most_bytes=8_000_000, url=url)
        end = await called(await accepted(deck))
    assert end.fault == "contract_violation"
    assert "'content' of a result has 30,000 items; at most 1,000 are read" in str(end.detail)


@pytest.mark.req("K-1")
@pytest.mark.realtime
async def test_a_list_of_tools_that_is_nested_too_deep_is_called_that_at_once(
    tmp_path: Path,
):
    with pytest.raises(BindError, match="a message is nested too deep to be read"):
        await accepted(write_deck(tmp_path, with_input(deep(300))))


@pytest.mark.req("K-1")
@pytest.mark.realtime
@pytest.mark.parametrize(
    ("tools", "words"),
    [
        ("[]", "more than 100 pages"),
        ("[dict(TOOLS[0], name='t%s' % n) for n in range(900)]", "more than 1,000 tools"),
        ("[dict(TOOLS[0], description='w' * 600_000)]", "more than 1,000 tools"),
    ],
)
async def test_a_list_of_tools_without_end_is_not_read_to_it(
    tools: str, words: str, tmp_path: Path
):
    listing = f"return {{'tools': {tools}, 'nextCursor': 'more'}}"
    text = SERVER.replace('return {"tools": TOOLS}', listing)
    with pytest.raises(BindError, match=words):
        await accepted(write_deck(tmp_path, text))
