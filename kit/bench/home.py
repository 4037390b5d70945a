"""Where the checkout is: grids, cases, cards and rubrics are read from it."""

from pathlib import Path

HOME = Path(__file__).resolve().parents[2]
