"""What model calls were for and what they cost, over stored turns: deciding, working, and the extra calls."""

from typing import Any

from kit.core.outcome import Usage, total
from kit.core.value import Value
from kit.stores.tally import TOKENS, Tally

EXTRA = ("compose", "prior_context", "summary")
"""Purposes of calls that are made beside routing and answering, only when they are needed."""


class Outlay(Value):
    """The model calls of one purpose."""

    turns: int
    """In which there was one."""
    usage: Usage
    """Of all of them; its cost is None where no price is known."""


class Spending(Value):
    """Model calls by purpose, over so many turns of so many users."""

    turns: int
    users: int
    by_purpose: dict[str, Outlay]

    @property
    def extra(self) -> Usage:
        """The extra calls together."""
        return total(
            self.by_purpose[purpose].usage for purpose in EXTRA if purpose in self.by_purpose
        )

    def rows(self) -> list[tuple[str, str, Any]]:
        """(metric, of, value); dollars are None where no price is known."""
        rows: list[tuple[str, str, Any]] = []
        for purpose, outlay in self.by_purpose.items():
            rows += [
                ("model_calls_total", purpose, outlay.usage.model_calls),
                ("model_calls_per_turn", purpose, outlay.usage.model_calls / self.turns),
                ("turns_with_model_call", purpose, outlay.turns),
                ("tokens_total", purpose, outlay.usage.input_tokens + outlay.usage.output_tokens),
                ("cached_tokens_total", purpose, outlay.usage.cached_tokens),
                ("cost_dollars_total", purpose, outlay.usage.cost),
                ("cost_dollars_per_turn", purpose, _share(outlay.usage.cost, self.turns)),
            ]
        cost = self.extra.cost
        purposes = " + ".join(EXTRA)
        return [
            *rows,
            ("extra_cost_dollars_per_turn", purposes, _share(cost, self.turns)),
            ("extra_cost_dollars_per_user", f"{self.users} users", _share(cost, self.users)),
        ]


def spending(tally: Tally) -> Spending:
    """Sums what model calls were for; turns stored before this was kept count as turns and add no call."""
    by_purpose: dict[str, Outlay] = {}
    for purpose, turns in sorted(tally.of("purpose").items()):
        by_purpose[purpose] = Outlay(turns=turns, usage=_usage(tally, purpose))
    return Spending(turns=tally.counts["turns",], users=len(tally.users), by_purpose=by_purpose)


def _usage(tally: Tally, purpose: str) -> Usage:
    amounts: dict[str, int] = {}
    for name in TOKENS:
        amounts[name] = tally.counts[name, purpose]
    return Usage(
        **amounts,
        cost=tally.dollars.get(("cost", purpose)),
        estimated=tally.counts["estimated", purpose] > 0,
    )


def _share(cost: float | None, of: int) -> float | None:
    if cost is not None and of:
        return cost / of
    return None
