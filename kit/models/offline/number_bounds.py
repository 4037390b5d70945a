"""Keeps a number within the bounds and on the steps that a JSON schema allows."""

from kit.models.offline.json_schema import Schema


def bounds(spec: Schema, whole: bool) -> tuple[float, float]:
    """The least and the greatest number allowed; infinite where a bound is missing."""
    step = 1.0 if whole else 1e-6
    low = float(spec.get("minimum", float("-inf")))
    high = float(spec.get("maximum", float("inf")))
    if isinstance(spec.get("exclusiveMinimum"), int | float) and not isinstance(spec.get("exclusiveMinimum"), bool):
        low = max(low, float(spec["exclusiveMinimum"]) + step)
    if isinstance(spec.get("exclusiveMaximum"), int | float) and not isinstance(spec.get("exclusiveMaximum"), bool):
        high = min(high, float(spec["exclusiveMaximum"]) - step)
    return low, high


def middle(low: float, high: float) -> float:
    """A number between the bounds for a field nothing is said about: 1 where they allow it."""
    if low == float("-inf"):
        return min(1.0, high)
    return max(1.0, low) if high == float("inf") else (low + high) / 2


def to_step(value: float, low: float, high: float, spec: Schema, whole: bool) -> float | int:
    """Moves a number to the nearest allowed step, and to a whole number where one is asked for."""
    if step := spec.get("multipleOf"):
        value = round(value / step) * step
        value = value + step if value < low else value - step if value > high else value
    if not whole:
        return value
    rounded = int(value // 1)
    return rounded + 1 if rounded < low else rounded
