"""The notation of shapes: what it says, where it is wrong, and what an output schema promises of it."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import example, given
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
