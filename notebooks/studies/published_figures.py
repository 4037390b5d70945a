"""What published figures settle, and which sample would settle the rest."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from math import ceil, exp, log, sqrt
from pathlib import Path
from typing import Literal

import yaml
from pydantic import ValidationError

from kit.bench.case import read_cases
from kit.bench.latency_baseline import PUBLISHED, VARIATION, LatencyBaseline
from kit.bench.routing import RoutingKit, catalog_of, catalog_team
from kit.bench.scoring.run_case import run_case
from kit.bench.scoring.scorers import exact
from kit.bench.statistics.difference import newcombe
from kit.compose.deck import load_deck
from kit.core.errors import DataError
from kit.core.value import Value
from kit.home import HOME
from kit.metrics.estimate import LEVEL, Estimate, normal_reach, wilson
from studies.sample_size import items_for_shares, items_for_target, target

EMPTY = "empty: needs {} and a key"


class PublishedFigure(Value):
    """One figure as its source has it."""

    id: str
    says: str
    source: str
    needs: str
    """The model a measurement of ours would need."""
    share: tuple[int, int] | None = None
    one_in: int | None = None
    """Wrong about once in so many."""
    ms: float | None = None
    of: int | None = None
    """Measurements behind a mean."""
    target: float | None = None
    prompt: Literal["plain", "strict-gating"] = "plain"
    counts: Literal["exact", "whole", "reported", "ms"] = "exact"
    """What of our rows is the same thing: every sub-agent and no other; the first reply lacks no
    call; a lacking call was reported; milliseconds of routing."""

    @property
    def rate(self) -> float:
        """Right, of a figure without a sample."""
        return 1 - 1 / self.one_in if self.one_in else 0.0


class Claim(Value):
    """What two figures, side by side, are said to show."""

    says: str
    first: str
    second: str


class Trade(Value):
    """What a choice is said to cost or buy, without a sample."""

    says: str
    source: str
    measure: Literal["race_tokens", "race_tail", "time_outs", "distilled"]


class Evidence(Value):
    """What data/source/published.yaml holds."""

    sources: dict[str, str]
    figures: tuple[PublishedFigure, ...]
    claims: tuple[Claim, ...]
    latencies: tuple[LatencyBaseline, ...]
    trades: tuple[Trade, ...]


class EvidenceRow(Value):
    """One row of the table: a published figure or claim, its interval, what that settles, what is missing, and ours."""

    says: str
    source: str
    interval: str
    settles: str
    missing: str
    ours: str


def read_evidence(path: Path = PUBLISHED) -> Evidence:
    """Reads the published figures and claims. Raises DataError when the file is missing or not of that shape."""
    try:
        return Evidence.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))
    except (OSError, yaml.YAMLError, ValidationError) as error:
        raise DataError(f"{path} cannot be used: {error}") from error


def evidence_rows(evidence: Evidence, ours: Mapping[str, str] | None = None) -> list[EvidenceRow]:
    """Returns a row for each figure, then one for each claim.

    `ours`: figure id -> what was measured here; without it the cell says what it would need (decisions 24).
    """
    own, figures = ours or {}, {figure.id: figure for figure in evidence.figures}
    rows = [_of_figure(figure, own.get(figure.id)) for figure in evidence.figures]
    for claim in evidence.claims:
        both = (
            f"{own[claim.first]}; {own[claim.second]}"
            if {claim.first, claim.second} <= set(own)
            else None
        )
        rows.append(_of_claim(claim, figures[claim.first], figures[claim.second], both))
    return rows


def _of_figure(figure: PublishedFigure, ours: str | None) -> EvidenceRow:
    head = {
        "says": figure.says,
        "source": figure.source,
        "ours": ours or EMPTY.format(figure.needs),
    }
    if figure.ms is not None and figure.of is not None:
        return EvidenceRow(**head, **_of_mean(figure.ms, figure.of))
    goal = figure.target or LEVEL
    if figure.share is None:
        sample = items_for_target(figure.rate, goal) or 0
        missing = (
            f"{sample:,} queries, if the rate is as said"
            if sample
            else "none: the rate is the target"
        )
        return EvidenceRow(
            **head, interval="none: no sample is given", settles="nothing", missing=missing
        )
    power = target(wilson(*figure.share), goal)
    more = (
        "nothing: it is settled"
        if power.more == 0
        else f"{power.more:,} more, all like these"
        if power.more
        else "no sample"
    )
    interval = f"{power.proportion}: at least {int(100 * power.proportion.low)} %"
    return EvidenceRow(**head, interval=interval, settles=power.settles, missing=more)


def _of_mean(ms: float, of: int) -> dict[str, str]:
    z, cv = normal_reach(), VARIATION
    half = z * cv / sqrt(of)
    interval = f"none given; {ms * (1 - half):,.0f} to {ms * (1 + half):,.0f} ms if the spread were half the mean"
    sample = f"{ceil((z * cv / 0.1) ** 2):,} turns for 10 % either way, with the spread published"
    return {
        "interval": interval,
        "settles": f"an order of magnitude, from {of} turns",
        "missing": sample,
    }


def _of_claim(
    claim: Claim, first: PublishedFigure, second: PublishedFigure, ours: str | None
) -> EvidenceRow:
    head = {
        "says": claim.says,
        "source": _both(first.source, second.source),
        "ours": ours or EMPTY.format(_both(first.needs, second.needs)),
    }
    if first.ms and second.ms and first.of and second.of:
        return EvidenceRow(**head, **_of_ratio(first.ms, second.ms, first.of, second.of))
    if first.share and second.share:
        difference = newcombe(first.share, second.share)
        sample = items_for_shares(14 / 15, 1.0)
        return EvidenceRow(
            **head,
            interval=str(difference),
            settles="nothing: they are not told apart"
            if not difference.excludes(0.0)
            else "they differ",
            missing=f"{sample:,} queries for each, if one drops 1 call in 15 and the other none",
        )
    if second.share:
        return EvidenceRow(**head, **_of_reports(first.rate, wilson(*second.share)))
    rate, (right, total) = second.rate, first.share or (0, 0)
    lucky = rate**total
    return EvidenceRow(
        **head,
        interval=f"with 1 drop in {second.one_in}, {right} of {total} comes up {100 * lucky:.0f} times in 100",
        settles="they do not contradict each other",
        missing=f"{items_for_target(1.0, rate):,} queries in a row without a drop would exclude 1 in {second.one_in}",
    )


def _of_ratio(first: float, second: float, n: int, m: int) -> dict[str, str]:
    spread = sqrt(log(1 + VARIATION**2))
    half = normal_reach() * spread * sqrt(1 / n + 1 / m)
    ratio = log(second / first)
    low, high = exp(ratio - half), exp(ratio + half)
    return {
        "interval": f"{second / first:.1f} times, {low:.1f} to {high:.1f} if both spreads were half the mean",
        "settles": "that it is slower, under that assumption" if low > 1 else "nothing",
        "missing": "the spread, or the same queries on both",
    }


def _of_reports(drops: float, reports: Estimate) -> dict[str, str]:
    sample = items_for_target(1.0, LEVEL) or 0
    return {
        "interval": f"reported: {reports}",
        "settles": "that most were reported, with effort low; of effort none nothing is counted",
        "missing": f"{sample} dropped calls, every one reported: about "
        f"{sample / (1 - drops):,.0f} mixed queries at 1 drop in 15",
    }


def _both(first: str, second: str) -> str:
    return first if first == second else f"{first} and {second}"


def evidence_table(rows: Sequence[EvidenceRow], sources: Mapping[str, str]) -> str:
    """Formats the rows as a table in Markdown."""
    head = "| published | source | 95 % interval | settles | what would settle the rest | ours |"
    lines = [
        f"| {r.says} | {r.source} | {r.interval} | {r.settles} | {r.missing} | *{r.ours}* |"
        for r in rows
    ]
    names = "; ".join(f"{key}: {name}" for key, name in sources.items())
    return "\n".join([head, "|---|---|---|---|---|---|", *lines, "", f"Sources. {names}."])


def latency_table(baselines: Sequence[LatencyBaseline]) -> str:
    """Formats the published latencies as a table in Markdown."""
    head = "| published | source | from | what would settle it | ours |"
    ours = EMPTY.format("a paid model")
    lines = [f"| {b.says} | {b.source} | {b.of} | {b.sample} | *{ours}* |" for b in baselines]
    return "\n".join([head, "|---|---|---|---|---|", *lines])


async def route_stand_in() -> dict[int, Estimate]:
    """Routes data/cases/mixed.jsonl by the offline stand-in; returns parts of a message -> share of
    those routed exactly."""
    deck = load_deck(HOME / "cards" / "consumer")
    kit = RoutingKit(catalog_team(catalog_of(deck)))
    right: dict[int, list[bool]] = defaultdict(list)
    for case in read_cases(HOME / "data" / "cases" / "mixed.jsonl"):
        ((turn, _),) = await run_case(case, kit)
        right[len(case.turns[0].expected)].append(exact(case, turn) == 1.0)
    kit.store.close()
    return {parts: wilson(sum(hits), len(hits)) for parts, hits in sorted(right.items())}


def stand_in_table(shares: Mapping[int, Estimate]) -> str:
    """Formats what the stand-in reaches as a table in Markdown."""
    lines = [
        f"| {parts} | {share} | {target(share, LEVEL).settles} |" for parts, share in shares.items()
    ]
    return "\n".join(
        [
            "| parts of a message | every sub-agent called and no other | of 0.95 |",
            "|---|---|---|",
            *lines,
        ]
    )
