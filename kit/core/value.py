"""The shape of every value in the kit: frozen, closed, documented by attribute docstrings. Some are
built without validation."""

import json
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import cache
from typing import Any, ClassVar, ParamSpec, Self, TypeVar, cast

from pydantic import BaseModel, ConfigDict
from pydantic_core import PydanticSerializationError, PydanticUndefined

from kit.core.language.controls import without_controls

P = ParamSpec("P")
V = TypeVar("V")

# What fields of dataclasses begin with. `dict[str, int]()` takes twenty times as long as `dict()`: the alias tries to
# note itself on what it makes, and fails. A turn makes 37 of them, which was 1.5 % of its instructions.
new_dict: Callable[[], dict[Any, Any]] = dict
new_list: Callable[[], list[Any]] = list
new_set: Callable[[], set[Any]] = set

# A frozen value refuses its own `__setattr__`. Its slots are set by their descriptors: `object.__setattr__`
# looks each of them up by its name, which takes 3 % of the CPU of a turn.
_new = object.__new__
_set_fields = vars(BaseModel)["__dict__"].__set__
_set_names = vars(BaseModel)["__pydantic_fields_set__"].__set__
_set_extra = vars(BaseModel)["__pydantic_extra__"].__set__
_set_private = vars(BaseModel)["__pydantic_private__"].__set__


class Value(BaseModel):
    """A frozen value that refuses fields it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    values_by_field: ClassVar[Any] = vars(BaseModel)["__dict__"]
    """What `vars()` gives of a value, by an attribute that nothing but a Value has and that costs no Python call."""

    def replace(self, **fields: Any) -> Self:
        """Returns the value with these fields replaced, their types unchecked (`builder`)."""
        return _builder_of(type(self))(**{**self.__dict__, **fields})


def builder(kind: Callable[P, V]) -> Callable[P, V]:
    """Returns a function that makes a value from its fields by name without validating them.

    What is given up is the check of types while a turn runs; pyright makes it at each call, since
    a builder has the signature of its class. Names are still checked: the function raises TypeError
    for a field that is missing or unknown. Mappings are handed over, not copied, and a field whose
    default can change has to be given.

    It is only for what the kit makes of its own values. Whatever comes from elsewhere (a model, a
    tool, a person, a file) is made by its class, which validates, and so is a trace that is read
    back. Raises TypeError for a class that validates more than types.
    """
    # A turn makes some sixty values. Made by their classes they cost it 8 to 10 % more CPU (paired
    # runs of three sub-agents, 1.11 and 1.22 ms), and half of a surrogate pair in a model's words
    # would end the turn. `model_construct` checks no names and costs three times as much as a class.
    model: Any = kind
    checks = model.__pydantic_decorators__
    if checks.field_validators or checks.model_validators:
        raise TypeError(f"{model.__name__} validates more than types: make it by its class")
    template: dict[str, Any] = {}
    required: list[str] = []
    for name, field in model.model_fields.items():
        template[name] = field.default
        if field.default is PydanticUndefined or not isinstance(field.default, Hashable):
            required.append(name)
    names = set(template)
    count = len(template)

    def build(**arguments: Any) -> Any:
        # The template keeps the order of the fields, in which a log has always been written.
        fields = {**template, **arguments}
        # Sets of names would say both in fewer words, and take 4 % of the CPU of a turn.
        if len(fields) != count:
            unknown = sorted(arguments.keys() - names)
            raise TypeError(f"{model.__name__} does not know: {unknown}")
        for name in required:
            if name not in arguments:
                raise TypeError(f"{model.__name__} lacks: {name!r}")
        value = _new(model)
        _set_fields(value, fields)
        _set_names(value, names)
        _set_extra(value, None)
        _set_private(value, None)
        return value

    return cast("Callable[P, V]", build)


_builder_of: Any = cache(builder)


def json_of(value: BaseModel) -> str:
    """Returns a value as one line of JSON. Halves of surrogate pairs, which UTF-8 has no place for, are left out:
    arguments of a call may hold them, and a reader of the events must not lose all the others for it."""
    try:
        return value.model_dump_json()
    except PydanticSerializationError:
        return json.dumps(map_leaves(value.model_dump(mode="json"), _without_halves))


def _without_halves(leaf: Any) -> Any:
    if isinstance(leaf, str):
        return without_controls(leaf)
    return leaf


def map_leaves(value: Any, change: Callable[[Any], Any]) -> Any:
    """Returns the same nested mappings, lists and tuples with `change` applied to whatever else is in them."""
    match value:
        case Mapping():
            return {
                key: map_leaves(item, change)
                for key, item in cast("Mapping[Any, Any]", value).items()
            }
        case list() | tuple():
            items = (map_leaves(item, change) for item in cast("Sequence[Any]", value))
            if isinstance(value, tuple):
                return tuple(items)
            return list(items)
        case _:
            return change(value)
