"""Where the shipped grids, cases, cards and rubrics lie, for notebooks."""

from kit.home import HOME as HOME
