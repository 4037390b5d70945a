"""What an enricher may be asked: parameters that forgive, because a small model wrote them."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict


def _clamped(value: Any) -> int:
    try:
        return min(20, max(1, int(float(value))))
    except (TypeError, ValueError, OverflowError):
        return 3


def _said(value: Any) -> str:
    return "" if value is None else str(value)[:500]


def _status(value: Any) -> Any:
    return value if value in ("accepted", "pending", "rejected") else None


Words = Annotated[str, BeforeValidator(_said)]


class Asking(BaseModel):
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
    status: Annotated[Literal["accepted", "pending", "rejected"] | None, BeforeValidator(_status)] = None
    within_days: Annotated[int, BeforeValidator(_clamped)] = 7
    limit: Annotated[int, BeforeValidator(_clamped)] = 3

    @property
    def text(self) -> str:
        """Every word that was given, the specific ones included."""
        return " ".join(filter(None, (self.query, self.category, self.brand, self.retailer, self.reward, self.game, self.id)))
