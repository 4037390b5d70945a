"""The numbers that a JSON schema allows for a field."""

from dataclasses import dataclass
from math import inf

from kit.models.offline.json_schema import Schema, kind_of


@dataclass(frozen=True, slots=True)
class NumberRange:
    """The least and the greatest number allowed, infinite where a bound is missing, and the step between two."""

    low: float
    high: float
    step: float
    """0 where every number between the bounds will do."""
    whole: bool

    @classmethod
    def of(cls, spec: Schema) -> "NumberRange":
        """Reads the bounds of a field."""
        low = float(spec.get("minimum", -inf))
        high = float(spec.get("maximum", inf))
        whole = kind_of(spec) == "integer"
        if whole:
            nearest = 1.0
        else:
            nearest = 1e-6
        if isinstance(least := spec.get("exclusiveMinimum"), int | float) and not isinstance(
            least, bool
        ):
            low = max(low, float(least) + nearest)
        if isinstance(most := spec.get("exclusiveMaximum"), int | float) and not isinstance(
            most, bool
        ):
            high = min(high, float(most) - nearest)
        return cls(low, high, spec.get("multipleOf") or 0, whole)

    def holds(self, value: float) -> bool:
        """Whether a number lies within the bounds, and is whole where it must be."""
        return self.low <= value <= self.high and (not self.whole or value == int(value))

    def middle(self) -> float | int:
        """A number for a field nothing is said about: 1 where the bounds allow it."""
        if self.low == -inf:
            return self.fit(min(1.0, self.high))
        return self.fit(max(1.0, self.low) if self.high == inf else (self.low + self.high) / 2)

    def fit(self, value: float) -> float | int:
        """Moves a number to the nearest allowed step, and to a whole number where one is asked for."""
        if self.step:
            value = round(value / self.step) * self.step
            if value < self.low:
                value = value + self.step
            elif value > self.high:
                value = value - self.step
        if not self.whole:
            return value
        rounded = int(value // 1)
        if rounded < self.low:
            return rounded + 1
        return rounded
