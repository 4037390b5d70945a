"""What an enricher may be asked: the schema that a model reads, and the parameters, which forgive
what a small model wrote."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict


def _clamped(value: Any) -> int:
    try:
        return min(20, max(1, int(float(value))))
    except (TypeError, ValueError, OverflowError):
        return 3


def _text(value: Any) -> str:
    if value is None:
        return ""
    return str(value)[:500]


def _status(value: Any) -> Any:
    if value in ("accepted", "pending", "rejected"):
        return value
    return None


Properties = Mapping[str, Mapping[str, Any]]
Words = Annotated[str, BeforeValidator(_text)]


class Parameters(BaseModel):
    """Words in any of the text fields; unknown fields are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    query: Words = ""
    category: Words = ""
    brand: Words = ""
    retailer: Words = ""
    reward: Words = ""
    game: Words = ""
    id: Words = ""
    location: Words = ""
    status: Annotated[
        Literal["accepted", "pending", "rejected"] | None, BeforeValidator(_status)
    ] = None
    within_days: Annotated[int, BeforeValidator(_clamped)] = 7
    limit: Annotated[int, BeforeValidator(_clamped)] = 3

    @property
    def text(self) -> str:
        """Every word that was given, the specific ones included."""
        return " ".join(
            filter(
                None,
                (
                    self.query,
                    self.category,
                    self.brand,
                    self.retailer,
                    self.reward,
                    self.game,
                    self.id,
                ),
            )
        )


def search_properties(description: str, **more: str) -> Properties:
    """The arguments of a search: free words, more named words, and how many rows."""
    properties = {name: {"type": "string", "description": text} for name, text in more.items()}
    return {
        "query": {"type": "string", "description": description},
        **properties,
        "limit": {"type": "integer", "description": "How many to return, 1 to 20."},
    }
