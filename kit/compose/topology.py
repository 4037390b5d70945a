"""How one call of a sub-agent is carried out on a surface: by itself, or by several agents together."""

from typing import Literal

from pydantic import Field

from kit.core.value import Value

DRAFT = "draft"
"""The hand-off field by which the second agent of a pipeline gets the first one's answer."""


class Topology(Value):
    """How an ask_ call of one agent is carried out. `delegate`, the default, asks the agent and
    waits for its answer.

    The members of a race are asked at the same moment. A second model after a while is `fallback_model` of a card, with
    `model_time_ms` of its policy.
    """

    kind: Literal["delegate", "race", "ensemble", "pipeline"] = "delegate"
    members: tuple[str, ...] = ()
    """Cards that answer in its place, itself among them or not; in a pipeline the first drafts and
    the second goes over it."""
    bar: float | None = Field(default=None, ge=0, le=1)
    """Race: the confidence with which an answer wins; None takes the first answer. Pipeline: the
    confidence from which a draft needs no second look; None always takes one."""
    judge: str | None = None
    """Ensemble: the card that picks or merges, by the rubric of the asked card."""


class Rubric(Value):
    """The criteria a judge applies, as cards/rubrics/<id>.yaml gives them."""

    id: str
    version: str = "1"
    criteria: tuple[str, ...] = Field(min_length=1)

    @property
    def text(self) -> str:
        """One criterion a line."""
        return "\n".join(f"- {criterion}" for criterion in self.criteria)
