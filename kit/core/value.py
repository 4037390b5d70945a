"""The shape of every value in the kit: frozen, closed, documented by attribute docstrings."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Self, cast

from pydantic import BaseModel, ConfigDict

_set = object.__setattr__


class Value(BaseModel):
    """A frozen value that refuses fields it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)
    values_by_field: ClassVar[Any] = vars(BaseModel)["__dict__"]
    """What `vars()` gives of a value, by an attribute that nothing but a Value has and that costs no Python call."""

    @classmethod
    def from_trusted(cls, fields: dict[str, Any]) -> Self:
        """A value of fields that need no check: every one of them given, each of its type, and the mapping handed over.

        Takes a third of the time. Only for what the kit makes by the dozen in every turn out of values of its own; whatever comes
        from elsewhere is validated where it comes in.
        """
        value = cls.__new__(cls)
        _set(value, "__dict__", fields)
        _set(value, "__pydantic_fields_set__", set(fields))
        _set(value, "__pydantic_extra__", None)
        _set(value, "__pydantic_private__", None)
        return value

    def replace(self, **fields: Any) -> Self:
        """Returns the value with these fields replaced and without any check, in half the time of a copy; see `from_trusted`."""
        return self.from_trusted({**self.__dict__, **fields})


def map_leaves(value: Any, change: Callable[[Any], Any]) -> Any:
    """Returns the same nested mappings, lists and tuples with `change` applied to whatever else is in them."""
    match value:
        case Mapping():
            return {key: map_leaves(item, change) for key, item in cast("Mapping[Any, Any]", value).items()}
        case list() | tuple():
            items = (map_leaves(item, change) for item in cast("Sequence[Any]", value))
            return tuple(items) if isinstance(value, tuple) else list(items)
        case _:
            return change(value)
