"""How a simulated model behaves: distributions of seconds and tokens, chances of mistakes, and the
right answer of a case."""

import math
from statistics import NormalDist
from typing import Any, cast

from pydantic import Field, model_validator

from kit.core.schema.json_value import is_object
from kit.core.value import Value

_NORMAL = NormalDist()


class LogNormal(Value):
    """A log-normal distribution, given by its median or by a published `mean`."""

    median: float = Field(gt=0)
    sigma: float = Field(default=0.0, ge=0)
    """Standard deviation of the logarithm; 0 is always the median."""

    @model_validator(mode="before")
    @classmethod
    def _median_from_mean(cls, data: Any) -> Any:
        if not is_object(data) or "mean" not in data:
            return cast("object", data)
        fields = dict(data)
        # The mean of a log-normal distribution lies above its median by this factor.
        factor = math.exp(float(fields.get("sigma", 0.0)) ** 2 / 2)
        fields["median"] = float(fields.pop("mean")) / factor
        return fields

    @property
    def mean(self) -> float:
        return self.median * math.exp(self.sigma**2 / 2)

    def quantile(self, share: float) -> float:
        """The value below which `share` of the draws lie; 0 < share < 1."""
        if self.sigma:
            return self.median * math.exp(self.sigma * _NORMAL.inv_cdf(share))
        return self.median


class Law(Value):
    """What a simulated model does, call by call. Every figure is a chance from 0 to 1 unless it says otherwise."""

    latency: LogNormal = LogNormal(median=1.0)
    """Seconds for a whole reply."""
    first: float = Field(default=0.3, ge=0, le=1)
    """Share of that time before the first token."""
    tokens: LogNormal = LogNormal(median=60.0)
    """Output tokens of a reply."""
    drop: float = Field(default=0.0, ge=0, le=1)
    """A routing reply to a mixed request lacks one of its calls."""
    retry_drop: float | None = Field(default=None, ge=0, le=1)
    """The same, of a reply to being asked again; None takes `drop`."""
    under_report: float = Field(default=0.0, ge=0, le=1)
    """With a call dropped, its intent is not counted either: no failsafe can see that."""
    over_trigger: float = Field(default=0.0, ge=0, le=1)
    """A routing reply counts an intent too many: it is asked again for nothing."""
    stray: float = Field(default=0.0, ge=0, le=1)
    """A routing reply calls one agent more, which the request does not need."""
    refusal: float = Field(default=0.0, ge=0, le=1)
    """An answering agent declines."""
    malformed: float = Field(default=0.0, ge=0, le=1)
    """One call of a reply has arguments that cannot be read, and is lost."""


class Part(Value):
    """What a request asks of one agent."""

    agent: str
    query: str
    tool: str | None = None
    """The tool that agent needs for it; None where it answers without one."""


class Truth(Value):
    """What is right for one case: known to whoever made it, and to the simulated models that err from it."""

    case: str
    """Names the case; with the seed and the place of a call it fixes every draw."""
    parts: tuple[Part, ...] = ()
    """In the order asked; empty where nobody should be asked."""
