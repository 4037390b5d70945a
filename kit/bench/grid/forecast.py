"""What a grid will ask for before it is played: cells, time and dollars, judged by what an earlier run took."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean

from kit.bench.grid.grid_file import GridSpec
from kit.bench.grid.results import read_results, read_rows
from kit.bench.grid.run import TIMINGS
from kit.compose.deck import Deck
from kit.core.display.count import many
from kit.core.model import ModelSpec
from kit.core.value import Value
from kit.home import HOME
from kit.models.usage import CHARACTERS
from kit.patterns.agents_as_tools import MAX_ROUNDS

EXAMPLE = HOME / "data" / "results" / "reference" / "patterns_example"
"""The run from whose turns a forecast is made where nobody names another."""
START = 3.0
"""Seconds until the first cell: a process, its imports, a kit."""
VERDICT = 40
"""Tokens of one, about."""
UNPAID = ("offline", "simulated")
"""Providers that ask for no money."""
Price = tuple[float, float]
"""Dollars of a million tokens in, and out."""


class Pace(Value):
    """What one turn took in an earlier run, by pattern; the whole run's mean stands under the empty name."""

    cpu: dict[str, float]
    """Seconds of one core."""
    tokens_in: dict[str, float]
    tokens_out: dict[str, float]


class Forecast(Value):
    """What a grid will ask for, about."""

    cells: int
    turns: int
    seconds: float | None
    """None where models take their own time."""
    dollars: float | None
    """None where a model has no known price."""


def pace(folder: Path) -> Pace:
    """What the turns of a finished run took. Raises DataError for a folder without results."""
    rows = read_results(folder)
    milliseconds: dict[str, float] = {}
    for line in read_rows(folder / TIMINGS, "cell"):
        milliseconds[line["cell"]] = line.get("cpu_ms", 0.0)
    cpu, reads, writes = (defaultdict[str, list[float]](list) for _ in range(3))
    for row in rows:
        for name in ("", row["pattern"]):
            cpu[name].append(milliseconds.get(row["cell"], 0.0) / 1000 if row["turn"] == 0 else 0.0)
            reads[name].append(row["input_tokens"] or 0)
            writes[name].append(row["output_tokens"] or 0)
    return Pace(cpu=_means(cpu), tokens_in=_means(reads), tokens_out=_means(writes))


def forecast(spec: GridSpec, pace_of_turns: Pace) -> Forecast:
    """What a grid will ask for when none of it was played yet, in one process on a machine like
    that of the earlier run."""
    grid = spec.grid
    often = len(grid.prompts) * len(grid.settings) * len(grid.faults) * grid.repeats
    turns = often * sum(len(case.scored) for case in spec.cases)
    prices: dict[str, Price] = {}
    for key, model in spec.every_model.items():
        price = _price_of(model, grid.limits.unpriced)
        if price is not None:
            prices[key] = price
    seconds = START
    dollars = 0.0
    for model in grid.models:
        for pattern in grid.patterns:
            reads = _of(pace_of_turns.tokens_in, pattern)
            writes = _of(pace_of_turns.tokens_out, pattern)
            seconds += turns * _of(pace_of_turns.cpu, pattern)
            dollars += turns * _dollars(prices.get(model), reads, writes)
            for name, judge in grid.judges.items():
                # it reads the rubric, and what a turn wrote as findings and again as the reply
                material = len(spec.rubrics[name].text) / CHARACTERS + 2 * writes
                dollars += turns * _dollars(prices.get(judge.model), material, VERDICT)
    ways = len(grid.models) * len(grid.patterns)
    return Forecast(
        cells=often * len(spec.cases) * ways,
        turns=turns * ways,
        seconds=seconds if spec.virtual else None,
        dollars=dollars if len(prices) == len(spec.every_model) else None,
    )


def announce(spec: GridSpec) -> str:
    """What a grid of real models may ask for at most, in a sentence; empty where nobody is paid or waited for."""
    if spec.timeless or not (spec.grid.judges or "measured" in spec.kinds.values()):
        return ""
    grid = spec.grid
    turns = sum(len(case.scored) for case in spec.cases) * grid.repeats * len(spec.faults)
    ways = len(spec.kinds) * len(spec.decks) * len(grid.patterns)
    measured_models = [model for model, kind in spec.kinds.items() if kind == "measured"]
    limits: list[str] = []
    if measured_models:
        often = turns * len(measured_models) * len(grid.patterns)
        calls = often * sum(most_calls(spec, deck) for deck in spec.decks.values())
        limits.append(
            f"{many(often * len(spec.decks), 'turn')} of real models and {many(calls, 'call')} of theirs"
        )
    if grid.judges:
        names = ", ".join(dict.fromkeys(judge.model for judge in grid.judges.values()))
        limits.append(f"{many(turns * ways * len(grid.judges), 'call')} of judges ({names})")
    return (
        f"At most {', and '.join(limits)}, each sent twice where it fails; {_about(spec)}; "
        f"{_limit(spec, ways)}."
    )


def _limit(spec: GridSpec, ways: int) -> str:
    """Says in words where the dollars of a grid end, and which models are not counted there."""
    dollars = spec.grid.limits.dollars
    if dollars is None:
        return "no limit of dollars is set (limits.dollars)"
    # Cells at work are finished, and so is the last case, on every way.
    most_after = spec.concurrency + ways * len(spec.faults) - 1
    sentence = (
        f"no case is begun past ${dollars:,.2f}, and at most {many(most_after, 'cell')} more are "
        f"played then"
    )
    free: list[str] = []
    for key, model in spec.every_model.items():
        if _price_of(model, spec.grid.limits.unpriced) is None:
            free.append(key)
    if free:
        sentence += (
            f"; {', '.join(free)} has no price and counts as nothing there: set price_in and "
            f"price_out, or limits.unpriced"
        )
    return sentence


def _about(spec: GridSpec) -> str:
    """Says in words what a grid costs about, by the turns of EXAMPLE."""
    dollars = forecast(spec, pace(EXAMPLE)).dollars
    if dollars is None:
        return "nobody can say the dollars, for a model of it has no price"
    if dollars < 0.01:
        return "about less than $0.01 for all of it"
    return f"about ${dollars:,.2f} for all of it"


def most_calls(spec: GridSpec, deck: Deck) -> int:
    """Calls of models that a turn can make at most, whatever its pattern: its limits say so."""
    settings = deck.settings
    stubs = spec.grid.sub_agents == "stubs"
    subs = deck.active_sub_agents(deck.cards[settings.orchestrator])
    steps = max((3 + (deck.policy(card).max_tool_calls or 0) for card in subs), default=0)
    orchestrator_calls = (
        2 + max(MAX_ROUNDS, settings.cap + 1) + 1
    )  # decides, looks again, composes in rounds and after a check
    helpers = 1 + settings.cap  # a summary, and what each agent is told of earlier turns
    return orchestrator_calls + helpers + (0 if stubs else settings.cap * steps)


def _price_of(model: ModelSpec, unpriced: Price | None) -> Price | None:
    """What a million tokens in, and out, of a model cost; None where nobody knows."""
    if model.price_in is not None:
        return model.price_in, model.price_out or 0.0
    if model.provider in UNPAID:
        return 0.0, 0.0
    return unpriced


def _dollars(price: Price | None, reads: float, writes: float) -> float:
    if price is None:
        return 0.0
    return (reads * price[0] + writes * price[1]) / 1e6


def _of(means: Mapping[str, float], pattern: str) -> float:
    return means.get(pattern, means[""])


def _means(values: Mapping[str, Sequence[float]]) -> dict[str, float]:
    means: dict[str, float] = {}
    for name, numbers in values.items():
        means[name] = fmean(numbers)
    return means
