"""The notation of shapes: what it says, where it is wrong, and what an output schema promises of it."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.core.errors import ShapeError
from kit.core.schema.containment import lack
from kit.core.schema.shape import DEEPEST, schema_of, shape_of
from kit.core.schema.validator import validator


def fits(value: Any, schema: Any) -> bool:
    return validator(schema).wrong(value) is None


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
        ("array<any>", [1, "x"], {}),
    ],
)
def test_a_shape_of_the_notation_admits_exactly_what_it_says(shape: Any, value: Any, foreign: Any):
    assert fits(value, schema_of(shape))
    assert not fits(foreign, schema_of(shape))
    assert lack(shape, schema_of(shape)) is None


@pytest.mark.req("AS-29")
@pytest.mark.parametrize(
    "value",
    [
        [{"a": [1]}, {"a": [0.5]}],
        [[{"a": 1}], []],
        {"": None, "not a name": "x", "b": [True, {}]},
        [],
    ],
)
def test_the_shape_that_a_value_has_admits_it(value: Any):
    assert fits(value, schema_of(shape_of(value)))


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
                "kind": {"const": "outlet"},
            },
            "required": ["rank", "kind"],
        }
    },
}


@pytest.mark.req("AS-29")
@pytest.mark.parametrize(
    ("shape", "place"),
    [
        ({"outlets": "array<{id: string, score: number, rank: integer}>"}, None),
        ({"outlets": "array<{kind: string}>"}, None),
        ({"outlets": "array<{kind: integer}>"}, "$.outlets[].kind"),
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
