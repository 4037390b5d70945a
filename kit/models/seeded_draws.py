"""Draws that are fixed by seed, case and place of a call, never by the order in which calls arrive."""

import hashlib
import struct
from dataclasses import dataclass
from zlib import crc32


@dataclass(frozen=True, slots=True)
class Draws:
    """Even draws from 0 to 1 for one call, and a mark of its own."""

    latency: float
    tokens: float
    drop: float
    choice: float
    report: float
    over: float
    stray: float
    refuse: float
    garble: float
    mark: int


def draws(seed: int, case: str, call: str) -> Draws:
    """The draws of one call, named by its place in the turn; equal for equal arguments, on every machine."""
    text = f"{seed}\0{case}\0{call}"
    digest = hashlib.sha512(text.encode("utf-8", "surrogatepass")).digest()
    *numbers, mark = struct.unpack("<10I", digest[:40])
    # Half a step in: a draw is never 0 or 1, where a log-normal quantile has no value.
    return Draws(*((number + 0.5) / 2**32 for number in numbers), mark=mark)


def canary_figure(case: str, agent: str) -> int:
    """The figure that stands in an agent's simulated answer to a case, so that what became of the
    answer can be checked."""
    return crc32(f"{case}/{agent}".encode("utf-8", "surrogatepass")) % 900_000 + 100_000
