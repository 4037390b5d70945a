"""What a grid will ask for before it is played: turns, calls, and dollars judged by what an earlier run took."""

from collections import defaultdict
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import NamedTuple

from kit.bench.grid.grid import Grid
from kit.bench.grid.grid_file import GridSpec
from kit.bench.grid.results import Results, Row
from kit.bench.systems.disclosure import PROJECTED
from kit.compose.deck import Deck
from kit.core.display.count import many
from kit.core.model import ModelSpec
from kit.home import HOME
from kit.models.message import CHARACTERS
from kit.patterns.agents_as_tools import MAX_ROUNDS

EXAMPLE = HOME / "data" / "results" / "reference" / "patterns_example"
"""The run from whose turns a forecast is made where nobody names another."""
VERDICT = 40
"""Tokens of one, about."""
UNPAID = ("offline", "simulated")
"""Providers that ask for no money."""
Price = tuple[float, float]
"""Dollars of a million tokens in, and out."""


class Tokens(NamedTuple):
    """Of one turn in an earlier run, on the mean."""

    reads: float
    writes: float


TokensOf = Mapping[str, Tokens]
"""Pattern -> what its turns took; that of the whole run stands under the empty name."""


def tokens_of(folder: Path) -> TokensOf:
    """What the turns of a finished run read and wrote. Raises DataError for a folder without results."""
    rows_of: dict[str, list[Row]] = defaultdict(list)
    for row in Results(folder):
        rows_of[""].append(row)
        rows_of[row["pattern"]].append(row)
    tokens: dict[str, Tokens] = {}
    for pattern, rows in rows_of.items():
        reads = sum(row["input_tokens"] or 0 for row in rows)
        writes = sum(row["output_tokens"] or 0 for row in rows)
        tokens[pattern] = Tokens(reads / len(rows), writes / len(rows))
    return tokens


def forecast(spec: GridSpec, tokens: TokensOf) -> float | None:
    """Dollars that a grid will cost, about, when none of it was played yet; None where a model has no known price."""
    grid = spec.grid
    often = len(grid.prompts) * len(grid.settings) * len(grid.faults) * grid.repeats
    turns = often * spec.scored_turns
    prices = {key: _price_of(model, grid) for key, model in spec.every_model.items()}
    if None in prices.values():
        return None
    dollars = 0.0
    for model, pattern in product(grid.models, grid.patterns):
        turn = tokens.get(pattern, tokens[""])
        dollars += turns * _dollars(prices[model], turn.reads, turn.writes)
        for name, judge in grid.judges.items():
            # It reads the rubric, and what a turn wrote as findings and again as the reply.
            material = len(spec.rubrics[name].text) / CHARACTERS + 2 * turn.writes
            dollars += turns * _dollars(prices[judge.model], material, VERDICT)
    return dollars


def announce(spec: GridSpec) -> str:
    """What a grid of real models may ask for at most, in a sentence; empty where nobody is paid or waited for."""
    if spec.timeless or not (spec.grid.judges or "measured" in spec.kinds.values()):
        return ""
    grid = spec.grid
    turns = spec.scored_turns * grid.repeats * len(spec.faults)
    ways = len(grid.models) * len(spec.decks) * len(grid.patterns) + len(spec.systems)
    measured_models = [model for model in grid.models if spec.kinds[model] == "measured"]
    limits: list[str] = []
    if spec.systems:
        answers = many(spec.scored_turns * grid.repeats * len(spec.systems), "answer")
        limits.append(f"{answers} of {many(len(spec.systems), 'whole system')}")
    if measured_models:
        often = turns * len(measured_models) * len(grid.patterns)
        calls = often * sum(most_calls(spec, deck) for deck in spec.decks.values())
        turns_of_models = many(often * len(spec.decks), "turn")
        limits.append(f"{turns_of_models} of real models and {many(calls, 'call')} of theirs")
    if grid.judges:
        names = ", ".join(dict.fromkeys(judge.model for judge in grid.judges.values()))
        limits.append(f"{many(turns * ways * len(grid.judges), 'call')} of judges ({names})")
    twice = "" if limits and not grid.models else ", each sent twice where it fails"
    return f"At most {', and '.join(limits)}{twice}; {_about(spec)}; {_limit(spec, ways)}."


def _limit(spec: GridSpec, ways: int) -> str:
    """Says in words where the dollars of a grid end, and which models are not counted there."""
    dollars = spec.grid.limits.dollars
    if dollars is None:
        return "no limit of dollars is set (limits.dollars)"
    # Cells at work are finished, and so is the last case, on every way.
    most_after = many(spec.concurrency + ways * len(spec.faults) - 1, "cell")
    sentence = (
        f"no case is begun past ${dollars:,.2f}, and at most {most_after} more are played then"
    )
    if spec.systems:
        sentence += "; a system that does not say what it spends is not held to that"
    prices = {key: _price_of(model, spec.grid) for key, model in spec.every_model.items()}
    unpriced = ", ".join(key for key, price in prices.items() if price is None)
    if unpriced:
        sentence += (
            f"; without a price, and counted as nothing there: {unpriced} (set price_in and "
            f"price_out, or limits.unpriced)"
        )
    return sentence


def _about(spec: GridSpec) -> str:
    """Says in words what a grid costs about, by the turns of EXAMPLE."""
    if spec.systems:
        return (
            "what a system asks of its models, and what that costs, nobody can say before it has "
            f"answered: a projection follows after {PROJECTED} cases"
        )
    dollars = forecast(spec, tokens_of(EXAMPLE))
    if dollars is None:
        return "nobody can say the dollars, for a model of it has no price"
    # A part of a cent has more digits than anybody can know beforehand.
    if dollars < 0.01:
        return "about less than $0.01 for all of it"
    return f"about ${dollars:,.2f} for all of it"


def most_calls(spec: GridSpec, deck: Deck) -> int:
    """Calls of models that a turn can make at most, whatever its pattern: its limits say so."""
    settings = deck.settings
    subs = deck.active_sub_agents(deck.cards[settings.orchestrator])
    steps = max((3 + (deck.policy(card).max_tool_calls or 0) for card in subs), default=0)
    # It decides, looks again, and composes in rounds and after a check.
    orchestrator_calls = 2 + max(MAX_ROUNDS, settings.cap + 1) + 1
    # A summary, and what each agent is told of earlier turns.
    helpers = 1 + settings.cap
    if spec.grid.sub_agents == "stubs":
        return orchestrator_calls + helpers
    return orchestrator_calls + helpers + settings.cap * steps


def _price_of(model: ModelSpec, grid: Grid) -> Price | None:
    """What a million tokens in, and out, of a model cost; None where nobody knows."""
    if model.price_in is not None:
        return model.price_in, model.price_out or 0.0
    if model.provider in UNPAID:
        return 0.0, 0.0
    return grid.limits.unpriced


def _dollars(price: Price | None, reads: float, writes: float) -> float:
    if price is None:
        return 0.0
    return (reads * price[0] + writes * price[1]) / 1e6
