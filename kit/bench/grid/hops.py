"""The hops of a turn: what its calls to agents elsewhere took, and what was spent there, as figures
of a cell and of a report."""

from collections.abc import Iterable, Sequence

from kit.bench.grid.comparison import summarise
from kit.bench.grid.grid_file import GridSpec
from kit.bench.grid.results import Results, Row, tidy
from kit.bench.statistics.measures import PEER_MEASURES
from kit.core.bodies.call import Hop
from kit.core.display.count import many
from kit.core.event import Event
from kit.patterns.a2a import A2A

Figures = dict[str, float | None]


def hops_of(events: Iterable[Event]) -> list[Hop]:
    """The hops of a turn, in the order in which they ended."""
    return [event.body for event in events if event.body.kind == "hop"]


def hop_counts(hops: Sequence[Hop]) -> Figures:
    """What hops carried and what the peers spent, by name; None where a peer is silent. What a cell
    costs is counted in calls."""
    size = model_calls = input_tokens = output_tokens = 0
    cost: float | None = None
    silent = False
    for hop in hops:
        size += hop.bytes_out + hop.bytes_in
        usage = hop.usage
        if usage is None:
            silent = True
            continue
        model_calls += usage.model_calls
        input_tokens += usage.input_tokens
        output_tokens += usage.output_tokens
        if usage.cost is not None:
            cost = (cost or 0.0) + usage.cost
    return {
        "hops": len(hops),
        "hop_bytes": size,
        "peer_model_calls": None if silent else model_calls,
        "peer_input_tokens": None if silent else input_tokens,
        "peer_output_tokens": None if silent else output_tokens,
        "peer_cost": None if silent else cost,
    }


def hop_times(hops: Sequence[Hop]) -> Figures:
    """What the same took, hops that were under way together added up; None where a peer does not
    say how long it worked."""
    crossing = writing = work = 0.0
    silent = False
    for hop in hops:
        writing += hop.writing
        if hop.seconds is None or hop.peer_seconds is None:
            silent = True
        else:
            crossing = crossing + hop.seconds
            work = work + hop.peer_seconds
    return {
        "hop_ms": None if silent else round(1e3 * crossing, 3),
        "hop_writing_ms": round(1e3 * writing, 3),
        "peer_seconds": None if silent else round(work, 6),
    }


def hop_lines(spec: GridSpec, rows: Results, axes: Sequence[str]) -> list[str]:
    """What the hops of each way came to, a turn, and where their time is from; empty for a grid without any."""
    # By a law nothing is written, so nothing says how long writing takes.
    names = list(PEER_MEASURES)
    if spec.link is not None:
        names.remove("hop_writing_ms")
    crossing: Iterable[Row] = (row for row in rows if "hops" in row)
    summaries = list(map(str, summarise(tidy(crossing, names), axes)))
    if not summaries:
        return []
    spend = "What peers spent is part of their turn's figures above."
    silent = sum("hops" in row and row["peer_model_calls"] is None for row in rows)
    if silent:
        spend += f" In {many(silent, 'turn')} a peer did not say what it spent: those figures are of this side alone."
    return [f"What a hop takes is {_source(spec)}. {spend}", *summaries]


def _source(spec: GridSpec) -> str:
    """Where the time of a hop is from."""
    law = spec.link
    if A2A.name not in spec.grid.patterns:
        return "measured by the turn's own clock, over what the pattern puts between"
    if law is None:
        return "measured over a socket of this machine, the peers in the same process"
    return f"by the law of the grid: {law.ms:g} ms a message, and {law.ms_per_kb:g} ms for each thousand bytes"
