"""The shape of every value in the kit: frozen, closed, documented by attribute docstrings. Some are
built without validation."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import cache
from typing import Any, ClassVar, ParamSpec, Self, TypeVar, cast

from pydantic import BaseModel, ConfigDict
from pydantic_core import PydanticUndefined

P = ParamSpec("P")
V = TypeVar("V")


class Value(BaseModel):
    """A frozen value that refuses fields it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    values_by_field: ClassVar[Any] = vars(BaseModel)["__dict__"]
    """What `vars()` gives of a value, by an attribute that nothing but a Value has and that costs no Python call."""

    def replace(self, **fields: Any) -> Self:
        """Returns the value with these fields replaced, their types unchecked (`builder`)."""
        return _builder_of(type(self))(**{**self.__dict__, **fields})


def builder(kind: Callable[P, V]) -> Callable[P, V]:
    """Returns a function that takes the fields of a Value class by name and returns the value
    without validating it.

    It takes half the time, and a turn makes some fifty values. Given up is the check of types while
    a turn runs; pyright makes it at each call, for a builder has the signature of its class. Names
    are still checked: the function raises TypeError for a field that is missing or unknown.
    Mappings are handed over, not copied, and a field whose default can change has to be given.

    Only for what the kit makes of its own values. Whatever comes from elsewhere (a model, a tool, a
    person, a file) is made by its class, which validates, and so is a trace that is read back.
    Raises TypeError for a class that validates more than types.
    """
    model: Any = kind
    checks = model.__pydantic_decorators__
    if checks.field_validators or checks.model_validators:
        raise TypeError(f"{model.__name__} validates more than types: make it by its class")
    fields: dict[str, Any] = {name: field.default for name, field in model.model_fields.items()}
    defaults: set[str] = set()
    for name, value in fields.items():
        if value is not PydanticUndefined and isinstance(value, Hashable):
            defaults.add(name)
    scope: dict[str, Any] = {
        "_kind": model,
        "_new": object.__new__,
        "_set": object.__setattr__,
        "_defaults": fields,
        "_names": set(fields),
    }
    parameters = ", ".join(
        f"{name}=_defaults[{name!r}]" if name in defaults else name for name in fields
    )
    exec(  # as dataclasses do: a function whose parameters are the fields checks their names at no cost
        f"def build(*, {parameters}):\n"
        " _value = _new(_kind)\n"
        f" _set(_value, '__dict__', {{{', '.join(f'{name!r}: {name}' for name in fields)}}})\n"
        " _set(_value, '__pydantic_fields_set__', _names)\n"
        " _set(_value, '__pydantic_extra__', None)\n"
        " _set(_value, '__pydantic_private__', None)\n"
        " return _value\n",
        scope,
    )
    return scope["build"]


_builder_of: Any = cache(builder)


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
