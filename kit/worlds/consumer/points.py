"""The points ledger, seen four ways; every figure is a sum over its entries."""

from collections import defaultdict
from datetime import date, timedelta
from typing import Any

from kit.core.context import Principal
from kit.worlds.consumer import talk
from kit.worlds.consumer.rows import Reward
from kit.worlds.consumer.shopping import page
from kit.worlds.consumer.world import World, who
from kit.worlds.service.parameters import Parameters
from kit.worlds.service.search import NOISE, Index

Payload = dict[str, Any]
NOISE_OF_REWARDS = NOISE | frozenset(
    ["afford", "dollar", "redeem", "redeemable", "reward", "value", "worth"]
)
"""Words that every question about rewards shares: none of them is the name of one."""


def balance_of(world: World, principal: Principal) -> int:
    """The sum of a user's entries in the ledger."""
    return sum(entry.points for entry in world.ledger.get(who(principal), ()))


def balance(world: World, principal: Principal, parameters: Parameters) -> Payload:
    """Balance, what is pending, and the last 30 days."""
    since = (date.fromisoformat(world.as_of) - timedelta(days=30)).isoformat()
    recent = [entry.points for entry in world.ledger.get(who(principal), ()) if entry.date > since]
    pending = [
        receipt for receipt in world.receipts.get(who(principal), ()) if receipt.status == "pending"
    ]
    return {
        "balance": balance_of(world, principal),
        "pending": sum(receipt.points for receipt in pending),
        "pending_receipts": len(pending),
        "earned_30_days": sum(points for points in recent if points > 0),
        "spent_30_days": -sum(points for points in recent if points < 0),
        "as_of": world.as_of,
    }


def redemptions(world: World, principal: Principal, parameters: Parameters) -> Payload:
    """What the user redeemed, newest first."""
    history = sorted(
        world.redemptions.get(who(principal), ()),
        key=lambda redemption: redemption.date,
        reverse=True,
    )
    index = Index(
        history,
        lambda row: [(2.0, world.rewards[row.reward_id].name), (3.0, row.status), (4.0, row.id)],
        talk=talk.REWARDS,
    )
    result = index.search(parameters.text)
    rows = [
        {
            "id": row.id,
            "name": world.rewards[row.reward_id].name,
            "points": row.points,
            "date": row.date,
            "status": row.status,
        }
        for row in result.newest(parameters.limit, lambda redemption: redemption.date)
    ]
    return {
        **page("redemptions", rows, result),
        "total_points": sum(row.points for row in result.rows),
    }


def quote(world: World, principal: Principal, parameters: Parameters) -> Payload:
    """Rewards against the balance: the ones asked for, else the dearest the user can afford and the next one up."""
    have = balance_of(world, principal)
    by_cost = sorted(world.rewards.values(), key=lambda reward: (reward.points, reward.id))
    result = Index(
        by_cost,
        lambda reward: [(2.0, f"{reward.name} {reward.kind}"), (4.0, reward.id)],
        noise=NOISE_OF_REWARDS,
        talk=talk.REWARDS,
    ).search(parameters.text)
    if result.match == "named":
        rewards = result.first(parameters.limit)
    else:
        rewards = _around(by_cost, have)[: parameters.limit]
    rows = [
        {
            "id": r.id,
            "name": r.name,
            "points": r.points,
            "affordable": r.points <= have,
            "missing": max(0, r.points - have),
        }
        for r in rewards
    ]
    return {
        **page("rewards", rows, result),
        "balance": have,
        "affordable": sum(r.points <= have for r in by_cost),
    }


def _around(by_cost: list[Reward], have: int) -> tuple[Reward, ...]:
    within = [reward for reward in by_cost if reward.points <= have]
    beyond = [reward for reward in by_cost if reward.points > have]
    return (*reversed(within[-2:]), *beyond[:1], *beyond[1:])


def by_method(world: World, principal: Principal, parameters: Parameters) -> Payload:
    """How the balance came about, one row a method; the rows add up to the balance."""
    sums: dict[str, int] = defaultdict(int)
    counts: dict[str, int] = defaultdict(int)
    for entry in world.ledger.get(who(principal), ()):
        sums[entry.method] += entry.points
        counts[entry.method] += 1
    methods = sorted(sums, key=lambda method: -sums[method])
    return {
        "methods": [
            {"method": method, "points": sums[method], "count": counts[method]}
            for method in methods
        ],
        "balance": sum(sums.values()),
    }
