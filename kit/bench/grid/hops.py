"""The hops of a turn: what its calls to agents elsewhere took, and what was spent there, as figures of a cell and of a report."""

from collections.abc import Iterable, Sequence

from kit.bench.grid.comparison import Row, summarise
from kit.bench.grid.grid_file import GridSpec
from kit.bench.grid.results import COUNTS, PEER_MEASURES, Results, tidy
from kit.core.display.count import many
from kit.core.event import Event, Hop
from kit.core.outcome import total
from kit.patterns.a2a import A2A

Figures = dict[str, float | None]


def hop_counts(events: Iterable[Event]) -> Figures:
    """What a turn's hops carried and its peers spent, by name; empty where there was none, None where a peer is silent."""
    hops = _hops(events)
    if not hops:
        return {}
    usages = [hop.usage for hop in hops]
    total_usage = total(filter(None, usages))
    counts: Figures = {"hops": len(hops), "hop_bytes": sum(hop.bytes_out + hop.bytes_in for hop in hops)}
    return counts | {f"peer_{name}": None if None in usages else getattr(total_usage, name) for name in COUNTS}


def hop_times(events: Iterable[Event]) -> Figures:
    """What the same took, hops that were under way together added up; None where a peer does not say how long it worked."""
    hops = _hops(events)
    if not hops:
        return {}
    crossing, work = [hop.seconds for hop in hops], [hop.peer_seconds for hop in hops]
    return {
        "hop_ms": None if None in crossing else round(1e3 * sum(filter(None, crossing)), 3),
        "hop_writing_ms": round(1e3 * sum(hop.writing for hop in hops), 3),
        "peer_seconds": None if None in work else round(sum(filter(None, work)), 6),
    }


def hop_lines(spec: GridSpec, rows: Results, axes: Sequence[str]) -> list[str]:
    """What the hops of each way came to, a turn, and where their time is from; empty for a grid without any."""
    law = spec.link
    names = [name for name in PEER_MEASURES if law is None or name != "hop_writing_ms"]
    crossing: Iterable[Row] = (row for row in rows if "hops" in row)
    summaries = [str(summary) for summary in summarise(tidy(crossing, names), axes)]
    if not summaries:
        return []
    spend = "What peers spent is part of their turn's figures above."
    if silent := sum(1 for row in rows if "hops" in row and row["peer_model_calls"] is None):
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


def _hops(events: Iterable[Event]) -> list[Hop]:
    return [body for event in events if (body := event.body).kind == "hop"]
