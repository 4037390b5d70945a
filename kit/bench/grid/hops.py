"""The hops of a turn: what its calls to agents elsewhere took, and what was spent there, as figures
of a cell and of a report."""

from collections.abc import Iterable, Sequence

from kit.bench.grid.comparison import summarise
from kit.bench.grid.grid_file import GridSpec
from kit.bench.grid.results import Results, Row, tidy
from kit.bench.statistics.measures import COUNTS, PEER_MEASURES
from kit.core.bodies.call import Hop
from kit.core.display.count import many
from kit.core.event import Event
from kit.core.outcome import total
from kit.patterns.a2a import A2A

Figures = dict[str, float | None]


def hops_of(events: Iterable[Event]) -> list[Hop]:
    """The hops of a turn, in the order in which they ended."""
    return [event.body for event in events if event.body.kind == "hop"]


def hop_counts(hops: Sequence[Hop]) -> Figures:
    """What hops carried and what the peers spent, by name; None where a peer is silent. What a cell
    costs is counted in calls."""
    usages = [hop.usage for hop in hops if hop.usage is not None]
    usage = total(usages)
    silent = len(usages) < len(hops)
    figures: Figures = {
        "hops": len(hops),
        "hop_bytes": sum(hop.bytes_out + hop.bytes_in for hop in hops),
    }
    for name in COUNTS:
        figures[f"peer_{name}"] = None if silent else getattr(usage, name)
    return figures


def hop_times(hops: Sequence[Hop]) -> Figures:
    """What the same took, hops that were under way together added up; None where a peer does not
    say how long it worked."""
    silent = any(hop.seconds is None or hop.peer_seconds is None for hop in hops)
    crossing = sum(hop.seconds or 0.0 for hop in hops)
    work = sum(hop.peer_seconds or 0.0 for hop in hops)
    return {
        "hop_ms": None if silent else round(1e3 * crossing, 3),
        "hop_writing_ms": round(1e3 * sum(hop.writing for hop in hops), 3),
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
