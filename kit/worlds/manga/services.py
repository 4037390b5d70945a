"""The context service of the manga world, in this process."""

from pathlib import Path

from starlette.applications import Starlette

from kit.worlds.manga.enrichers import catalogue
from kit.worlds.manga.library import Library
from kit.worlds.service.context_service import context_app
from kit.worlds.service.faults import by_header


def context_service(folder: Path, pace: float, key: str | None = None) -> Starlette:
    """The service over the library in a folder; a request that asks for a fault gets it. With a
    `key` it signs its envelopes."""
    return context_app(catalogue(Library(folder)), latency=pace, faults=by_header, key=key)
