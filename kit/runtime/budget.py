"""What an agent may spend and what it has: a tree of accounts, reserved at dispatch, rolled up exactly once."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Literal

from kit.core.card import Policy
from kit.core.outcome import Usage
from kit.core.value import builder, new_dict, new_list
from kit.models.deadline import DEADLINE

_new_usage = builder(Usage)
Resource = Literal["input_tokens", "output_tokens", "tool_calls", "cost"]
"""What can run out, by the name it has in a Usage; time is kept by a deadline, depth beside the resources."""
_RESOURCES: tuple[Resource, ...] = ("input_tokens", "output_tokens", "tool_calls", "cost")


GRACE = 0.5
"""Seconds that work which is stopped has to end in order."""


class OverBudget(Exception):
    """Raised when an agent reaches a limit of its card; dispatch turns it into Failure(reason="budget")."""


class Deadline:
    """`with Deadline(seconds) as deadline:` ends its block as `asyncio.timeout` does.

    Once the time is over, what the block awaits is cancelled and TimeoutError raised. None is no
    limit. A cancellation from outside passes through; `expired` tells this time-out from others
    raised in the block. Clients read it as `seconds_left()`. `leave` is called GRACE later, when a
    block that takes no notice of being stopped may still be running.
    """

    # A turn of two sub-agents has five of them. Around `asyncio.timeout` they make 132 Python calls more, of the
    # 2,145 that benchmarks/turn_cost allows a turn.
    __slots__ = ("_above", "_cancelling", "_leave", "_seconds", "_task", "_timer", "expired")

    def __init__(self, seconds: float | None, leave: Callable[[], None] | None = None):
        self._seconds = seconds
        self._leave = leave
        self.expired = False
        self._timer: asyncio.TimerHandle | None = None

    def __enter__(self) -> "Deadline":
        if self._seconds is not None:
            loop = asyncio.get_running_loop()
            task = asyncio.current_task(loop)
            assert task is not None
            self._task = task
            self._cancelling = task.cancelling()
            self._above = DEADLINE.get()
            over = loop.time() + self._seconds
            self._timer = loop.call_at(over, self._ring)
            DEADLINE.set(min(self._above, over))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._timer is not None:
            # which also lets go of what the timer would call
            self._timer.cancel()
            DEADLINE.set(self._above)
        if (
            self.expired
            and self._task.uncancel() <= self._cancelling
            and kind is asyncio.CancelledError
        ):
            raise TimeoutError(f"no answer within {self._seconds:g} s") from error

    def _ring(self) -> None:
        self.expired = True
        self._task.cancel()
        if self._leave is not None:
            self._timer = asyncio.get_running_loop().call_later(GRACE, self._leave)


@dataclass(slots=True, eq=False)
class Ledger:
    """One agent's account in one invocation. Its limits hold for the agents below it too.

    While a child is open its whole reservation counts as taken here, so siblings can never spend the same token twice.
    """

    agent: str = ""
    parent: "Ledger | None" = None
    limits: dict[Resource, float] = field(default_factory=new_dict)
    depth: int | None = None
    """Levels of agents there may be below; None for any number."""
    closed: bool = False
    limit_above: bool = False
    """Something above can run out."""
    bounded: bool = False
    """Something here or above can run out."""
    children: list["Ledger"] = field(default_factory=new_list)
    """Those still open."""
    at_end: list[Callable[[], None]] = field(default_factory=new_list)
    """What the agent's tools have to put away when its work is over."""
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    model_calls: int = 0
    tool_calls: int = 0
    cost: float | None = None
    estimated: bool = False
    untold_tokens: int = 0
    untold_costs: int = 0

    def reserve(self, policy: Policy) -> None:
        """Takes this agent's limits out of what the agents above have left. Raises OverBudget where that is nothing."""
        above = self.parent
        amounts = (policy.tokens_in, policy.tokens_out, policy.max_tool_calls, policy.cost)
        for resource, limit in zip(_RESOURCES, amounts, strict=True):
            if limit is not None:
                self.limits[resource] = limit
        self.depth = policy.max_recursion_depth
        if above is not None:
            if above.depth is not None:
                if self.depth is None:
                    self.depth = above.depth - 1
                else:
                    self.depth = min(self.depth, above.depth - 1)
            if above.bounded:
                self.limit_above = True
                self._narrow(above)
            above.children.append(self)
        self.bounded = self.limit_above or bool(self.limits)

    def charge(self, usage: Usage) -> None:
        """Adds usage to this account. Once the account is closed, usage goes to the parent as well,
        so that nothing is lost."""
        if self.closed and self.parent is not None:
            self.parent.charge(usage)
        self.input_tokens += usage.input_tokens
        self.output_tokens += usage.output_tokens
        self.cached_tokens += usage.cached_tokens
        self.model_calls += usage.model_calls
        self.tool_calls += usage.tool_calls
        self.estimated = self.estimated or usage.estimated
        self.untold_tokens += usage.untold_tokens
        self.untold_costs += usage.untold_costs
        if usage.cost is not None:
            self.cost = (self.cost or 0.0) + usage.cost

    def settle(self) -> Usage:
        """Closes the account, once: gives back what was reserved, books what was spent on the
        parent, and returns that."""
        usage = _new_usage(
            input_tokens=self.input_tokens,
            output_tokens=self.output_tokens,
            cached_tokens=self.cached_tokens,
            model_calls=self.model_calls,
            tool_calls=self.tool_calls,
            cost=self.cost,
            estimated=self.estimated,
            untold_tokens=self.untold_tokens,
            untold_costs=self.untold_costs,
        )
        if not self.closed:
            self.closed = True
            if self.parent is not None:
                if self in self.parent.children:
                    self.parent.children.remove(self)
                self.parent.charge(usage)
        return usage

    @property
    def touched(self) -> bool:
        """Whether anything was booked here."""
        return bool(
            self.model_calls
            or self.tool_calls
            or self.input_tokens
            or self.output_tokens
            or self.cost
            or self.untold_costs
        )

    def room(self, resource: Resource) -> float | None:
        """What may still be spent; negative when more was, None without a limit."""
        if resource in self.limits:
            return self.limits[resource] - (
                self._in_use(resource) if self.children else getattr(self, resource) or 0
            )
        if self.limit_above and self.parent is not None:
            return self.parent.room(resource)
        return None

    def before_model(self, tokens: int, price: float | None) -> float | None:
        """Returns how many output tokens still fit after a prompt of about `tokens`.

        `price` is what a million prompt tokens cost, in dollars. Raises OverBudget if not even the prompt fits.
        """
        if not self.bounded:
            return None
        room = self.room("output_tokens")
        if room is not None and room < 1:
            raise OverBudget(f"tokens out: {self.output_tokens} spent, none is left")
        _fits(tokens, self.room("input_tokens"), "tokens in")
        dollars = self.room("cost")
        if dollars is not None:
            cost = (price or 0.0) * tokens / 1e6
            if dollars <= 0 or cost > dollars:
                raise OverBudget(f"cost: {cost:g} needed, {max(dollars, 0.0):g} left")
        return room

    def after_model(self) -> None:
        """Raises OverBudget when the call just booked took more than there was."""
        if self.bounded:
            for resource in _RESOURCES if self.limit_above else self.limits:
                room = self.room(resource)
                if room is not None and room < 0:
                    raise OverBudget(f"{resource.replace('_', ' ')}: {-room:g} more than allowed")

    def before_tools(self, count: int) -> None:
        """Raises OverBudget when `count` more tool calls are too many; then none of them runs."""
        if self.bounded:
            _fits(count, self.room("tool_calls"), "tool calls")

    def close(self) -> None:
        """Lets nobody spend any more, here and below."""
        self.limits["output_tokens"], self.bounded = 0, True
        for child in self.children:
            child.close()

    def within(self, agent: str) -> bool:
        """Whether this is an account of that agent, or of an agent it called, directly or not."""
        node: Ledger | None = self
        while node is not None and node.agent != agent:
            node = node.parent
        return node is not None

    def _narrow(self, above: "Ledger") -> None:
        for resource in _RESOURCES:
            available = above.room(resource)
            if available is None:
                continue
            if available <= 0 and resource != "tool_calls":
                raise OverBudget(
                    f"nothing is left of the {resource.replace('_', ' ')} of {above.agent!r}"
                )
            if resource in self.limits:
                self.limits[resource] = min(self.limits[resource], max(available, 0))

    def _in_use(self, resource: Resource) -> float:
        total = getattr(self, resource) or 0
        for child in self.children:
            total += max(child.limits.get(resource, 0), child._in_use(resource))
        return total


def _fits(amount: float, room: float | None, resource: str) -> None:
    if room is not None and amount > room:
        raise OverBudget(f"{resource}: {amount:g} needed, {max(room, 0):g} left")
