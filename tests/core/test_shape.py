"""The notation of shapes: what it says, where it is wrong, and what an output schema promises of it."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import assume, event, example, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from kit.core.errors import ShapeError
from kit.core.schema.containment import lack
from kit.core.schema.shape import DEEPEST, TYPES, schema_of, shape_of
from kit.core.schema.validator import validator

NAMES = st.sampled_from(["a", "b", "outlet_id"])
LEAVES: SearchStrategy[str] = st.sampled_from(TYPES)


def fields_of(types: SearchStrategy[str]) -> SearchStrategy[str]:
    fields = st.dictionaries(NAMES, st.none() | types, min_size=1)
    return fields.map(
        lambda parts: (
            "{"
            + ", ".join(f"{name}: {part}" if part else name for name, part in parts.items())
            + "}"
        )
    )


TEXTS = st.recursive(
    LEAVES, lambda types: types.map("array<{}>".format) | fields_of(types), max_leaves=6
)
SHAPES = st.recursive(
    TEXTS, lambda shapes: st.dictionaries(NAMES, shapes, min_size=1), max_leaves=4
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats(-3, 3) | st.sampled_from(["", "x"]),
    lambda values: (
        st.lists(values, max_size=3)
        | st.dictionaries(NAMES | st.sampled_from(["", "not a name", "1"]), values)
    ),
    max_leaves=12,
)


def schemas(depth: int = 3) -> SearchStrategy[Any]:
    """Output schemas of many makes, also of keywords that promise nothing."""
    types = st.sampled_from(["string", "number", "integer", "boolean", "null", "object", "array"])
    leaf: SearchStrategy[Any] = st.one_of(
        st.just({}),
        st.booleans(),
        types.map(lambda word: {"type": word}),
        st.lists(types, min_size=1, max_size=2, unique=True).map(lambda words: {"type": words}),
        st.lists(JSON, min_size=1, max_size=2).map(lambda values: {"enum": values}),
        st.sampled_from(
            [{"$ref": "#/$defs/a"}, {"$ref": "#"}, {"$ref": "#a"}, {"not": {"type": "null"}}]
        ),
    )
    if not depth:
        return leaf
    inner = st.deferred(lambda: schemas(depth - 1))
    properties = st.dictionaries(NAMES, inner)
    return leaf | st.one_of(
        st.builds(
            lambda p, r, o: {**({"type": "object"} if o else {}), "properties": p, "required": r},
            properties,
            st.lists(NAMES, unique=True),
            st.sampled_from([True, True, False]),
        ),
        st.builds(lambda items: {"type": "array", "items": items}, inner),
        st.builds(
            lambda head, items: {"type": "array", "prefixItems": [head], "items": items},
            inner,
            inner,
        ),
        st.builds(
            lambda word, ways: {word: ways},
            st.sampled_from(["anyOf", "oneOf", "allOf"]),
            st.lists(inner, min_size=1, max_size=2),
        ),
        st.builds(
            lambda one, more: {"allOf": [one], **more},
            inner,
            st.builds(
                lambda p, r: {"properties": p, "required": r},
                properties,
                st.lists(NAMES, unique=True),
            ),
        ),
    )


def value_of(schema: Any, root: Any, draw: Any, depth: int = 4) -> Any:
    """A value that was made with the schema in mind; it need not fit."""
    if not isinstance(schema, Mapping) or not depth:
        return draw(JSON)
    ways = [way for word in ("anyOf", "oneOf", "allOf") for way in schema.get(word, ())]
    if "$ref" in schema:
        ways.append(root if schema["$ref"] == "#" else root.get("$defs", {}).get("a", {}))
    if "enum" in schema:
        return draw(st.sampled_from(schema["enum"]))
    made = value_of(draw(st.sampled_from(ways)), root, draw, depth - 1) if ways else None
    if "properties" in schema:
        fields = {
            name: value_of(part, root, draw, depth - 1)
            for name, part in schema["properties"].items()
        }
        extra = dict.fromkeys(schema["required"], 1)
        return {**extra, **fields, **(made if isinstance(made, dict) else {})}
    if "items" in schema:
        head = [value_of(part, root, draw, depth - 1) for part in schema.get("prefixItems", ())]
        return [
            *head,
            *([value_of(schema["items"], root, draw, depth - 1)] * draw(st.integers(0, 2))),
        ]
    if made is not None:
        return made
    words = schema.get("type", [])
    word = draw(st.sampled_from([words] if isinstance(words, str) else words)) if words else ""
    plain = {
        "string": "x",
        "number": 0.5,
        "integer": 1,
        "boolean": True,
        "null": None,
        "object": {},
        "array": [],
    }
    return plain.get(word, 1)


def fits(value: Any, schema: Any) -> bool:
    return validator(schema).wrong(value) is None


def part_of(shape: Any, draw: Any) -> Any:
    """The same shape with fewer fields, or with less said about one."""
    if isinstance(shape, Mapping):
        names = draw(st.lists(st.sampled_from(sorted(shape)), unique=True, min_size=1))
        return {name: part_of(shape[name], draw) for name in names}
    return draw(st.sampled_from([shape, "any"]))


@pytest.mark.req("AS-29")
@pytest.mark.parametrize(
    ("shape", "value", "foreign"),
    [
        ({"outlet_ids": "array<string>"}, {"outlet_ids": ["o1"]}, {"outlet_ids": [1]}),
        (
            {"results": "array<{outlet_id, score, rank}>"},
            {"results": [{"outlet_id": "o1", "score": 0.5, "rank": 1}]},
            {"results": [{"outlet_id": "o1", "score": 0.5}]},
        ),
        (
            "array<{id: string, tags: array<string>}>",
            [{"id": "x", "tags": []}],
            [{"id": "x", "tags": [], "more": 1}],
        ),
        ({"page": {"at": "integer"}}, {"page": {"at": 2}}, {"page": {"at": 2.5}}),
    ],
)
def test_a_shape_of_the_notation_admits_exactly_what_it_says(shape: Any, value: Any, foreign: Any):
    assert fits(value, schema_of(shape))
    assert not fits(foreign, schema_of(shape))


@pytest.mark.req("AS-29")
@pytest.mark.parametrize(
    ("shape", "words"),
    [
        ({"ids": "array<strin>"}, "field 'ids', character 7: expected a type (did you mean 'string'"),
        ({"page": {"rows": "array<{id, score"}}, "field 'page.rows', character 17: expected '}', not ''"),
        ("array<{id, id}>", "character 11: expected a field that is not there yet, not 'id}>'"),
        ({"x": 3}, "field 'x': expected a text"),
        ("array<string> or so", "character 14: expected the end, not 'or so'"),
        ("array<" * (DEEPEST + 2), f"expected at most {DEEPEST} levels"),
    ],
)  # fmt: skip
def test_a_fault_in_a_shape_names_its_place(shape: Any, words: str):
    with pytest.raises(ShapeError) as error:
        schema_of(shape)
    assert words in str(error.value)


@pytest.mark.req("AS-29")
@given(st.text(alphabet="array<>{}: ,abc"))
def test_any_text_is_a_shape_or_a_fault(text: str):
    try:
        validator(schema_of(text)).wrong({})
    except ShapeError as error:
        assert "character" in str(error)


@pytest.mark.req("AS-29")
@given(JSON)
@example([{"a": [1]}, {"a": [0.5]}])
@example([[{"a": 1}], []])
def test_the_shape_that_a_value_has_admits_it(value: Any):
    assert fits(value, schema_of(shape_of(value)))


@pytest.mark.req("AS-29")
@settings(max_examples=100, deadline=None)  # a schema that refers to itself takes long to validate
@given(schemas(), schemas(1), SHAPES, st.data())
def test_what_an_output_schema_promises_every_output_has(
    schema: Any, definition: Any, shape: Any, data: Any
):
    """Whatever validates against the output schema validates against the part that was asked for."""
    schema = (
        {**schema, "$defs": {"a": definition, "b": {"$anchor": "a"}}}
        if isinstance(schema, dict)
        else {}
    )
    value = value_of(schema, schema, data.draw)
    try:
        assume(fits(value, schema))
    except (
        RecursionError
    ):  # a schema that refers to nothing but itself admits nothing that could be found out
        assume(False)
    asked_for = data.draw(
        st.sampled_from([shape, part_of(shape_of(value), data.draw) if value else shape_of(value)])
    )
    missing = lack(asked_for, schema)
    event("promised" if missing is None else "not promised")
    if missing is None:
        assert fits(value, schema_of(asked_for, closed=False))


@pytest.mark.req("AS-29")
@given(SHAPES, st.data())
def test_a_schema_promises_every_part_of_itself(shape: Any, data: Any):
    assert lack(part_of(shape, data.draw), schema_of(shape)) is None


OUTLETS = {
    "type": "object",
    "properties": {"outlets": {"type": "array", "items": {"$ref": "#/$defs/outlet"}}},
    "required": ["outlets"],
    "$defs": {
        "outlet": {
            "allOf": [{"type": "object", "required": ["id", "score"]}],
            "properties": {
                "id": {"type": "string"},
                "score": {"type": "integer"},
                "rank": {"enum": [1, 2]},
            },
            "anyOf": [
                {"required": ["rank"]},
                {"properties": {"rank": {"minimum": 1}}, "required": ["rank", "city"]},
            ],
        }
    },
}


@pytest.mark.req("AS-29")
@pytest.mark.parametrize(
    ("shape", "place"),
    [
        ({"outlets": "array<{id: string, score: number, rank: integer}>"}, None),
        ({"outlets": "array<{id: integer}>"}, "$.outlets[].id"),
        ({"outlets": "array<{city}>"}, "$.outlets[].city"),
        ({"results": "array"}, "$.results"),
        ("array", "$"),
    ],
)
def test_what_a_schema_does_not_promise_is_named_by_its_place(shape: Any, place: str | None):
    assert lack(shape, OUTLETS) == place


@pytest.mark.req("AS-29")
@pytest.mark.parametrize(
    ("schema", "shape", "value"),
    [
        ({"type": ["string", "null"]}, "string", None),
        ({"type": "number"}, "integer", 0.5),
        ({"type": "object", "properties": {"a": {"type": "string"}}}, {"a": "string"}, {}),
        ({"type": "array", "prefixItems": [{"type": "null"}], "items": {"type": "string"}}, "array<string>", [None]),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "string", None),
        ({"$ref": "#b", "type": "object", "$defs": {"b": {"$anchor": "b"}}}, {"a": "any"}, {}),
        ({"$defs": {"a": {"type": "string"}}, "anyOf": [{"$ref": "#/$defs/a"}, {}]}, "string", 1),
    ],
)  # fmt: skip
def test_what_some_output_lacks_is_not_promised(schema: Any, shape: Any, value: Any):
    assert fits(value, schema) and not fits(value, schema_of(shape, closed=False))
    assert lack(shape, schema) is not None
