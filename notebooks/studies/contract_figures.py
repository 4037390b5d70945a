"""What the contract's design says its choices cost and buy, beside what the same choices cost and
buy here, in simulation."""

from collections.abc import Mapping, Sequence
from statistics import fmean

from studies.distilled_handoff import WAYS, Reading, measure
from studies.published_figures import Trade
from studies.timeout_remedies import BUDGET, Call, play_calls, summarise


async def measure_trades(calls: int = 200, dialogues: int = 8) -> dict[str, str]:
    """Plays one sub-agent as it is, raced and with more time, and hand-offs of long conversations;
    says what came of each."""
    return {
        **of_calls(await play_calls(("as it is", "race", "more time"), calls)),
        **of_readings(await measure(dialogues)),
    }


def of_calls(rows: Sequence[Call]) -> dict[str, str]:
    """Returns in words what a race costs and buys, and how often a call is late; the tail is that
    of calls nobody cuts off."""
    found = {one.way: one for one in summarise(rows)}
    race, slow, plain = found["race"], found["more time"], found["as it is"].in_time
    gain = f"{1 - race.p95.value / slow.p95.value:.0%} off the 95th percentile"
    return {
        "race_tokens": f"{race.cost:.2f} times, two members",
        "race_tail": f"{gain}: {race.p95:.1f} s against {slow.p95:.1f} s",
        "time_outs": f"{1 - plain.value:.1%} [{1 - plain.high:.1%}, {1 - plain.low:.1%}] of the "
        f"calls take longer than {BUDGET:g} s",
    }


def of_readings(rows: Sequence[Reading]) -> dict[str, str]:
    """Returns in words how much less a sub-agent reads."""
    whole, distilled = ([row.tokens for row in rows if row.way == way] for way in WAYS)
    tokens = f"{fmean(whole):,.0f} tokens read without it, {fmean(distilled):,.0f} with it"
    return {"distilled": f"{tokens}, {len(distilled)} conversations"}


def trade_table(trades: Sequence[Trade], ours: Mapping[str, str]) -> str:
    """Formats them as a table in Markdown."""
    lines = [f"| {trade.says} | {trade.source} | {ours[trade.measure]} |" for trade in trades]
    return "\n".join(["| published | source | ours, simulated |", "|---|---|---|", *lines])
