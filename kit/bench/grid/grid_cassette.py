"""The cassette of a grid: a file, or the command line, says which; every cell has a track of its own."""

import shlex
from dataclasses import replace
from pathlib import Path

from kit.bench.grid.cell import tracks
from kit.bench.grid.grid import GridCassette
from kit.bench.grid.grid_file import GridSpec
from kit.runtime.recording.cassette import Cassette, Mode


def with_cassette(
    spec: GridSpec, file: Path | None, mode: Mode | None, folder: Path, source: Path
) -> tuple[GridSpec, Cassette | None]:
    """The grid with the recording it is to be played with, and that recording opened.

    `file` and `mode` go before what the grid's file says; a mode without any file means cassette.jsonl in `folder`.
    Raises CassetteError for a file that is missing or broken.
    """
    if file is None and mode is None and spec.grid.cassette is None:
        return spec, None
    grid_cassette = spec.grid.cassette or GridCassette(file=str(folder / "cassette.jsonl"))
    if file is not None:
        grid_cassette = GridCassette(file=str(file))
    if mode is not None:
        grid_cassette = grid_cassette.model_copy(update={"mode": mode})
    if file is None:
        option = ()
    else:
        option = ("--cassette", grid_cassette.file)
    again = shlex.join(("python", "-m", "kit", "grid", str(source), *option, "--refresh"))
    cassette = Cassette(grid_cassette.file, grid_cassette.mode, again=f"refresh it with: {again}")
    return replace(spec, grid=spec.grid.model_copy(update={"cassette": grid_cassette})), cassette


def drop_stale_tracks(spec: GridSpec, cassette: Cassette | None) -> None:
    """Takes what is not of this grid any more off the recording, once every cell was played."""
    if cassette is not None:
        cassette.close(set(tracks(spec)))
