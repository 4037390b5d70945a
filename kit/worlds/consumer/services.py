"""The services of the consumer world, in this process: the context service and the support service over one World."""

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from starlette.applications import Starlette

from kit.worlds.consumer.enrichers import catalogue
from kit.worlds.consumer.support_faults import lines_by_header
from kit.worlds.consumer.support_service import support_app
from kit.worlds.consumer.world import World, load_meta, load_world
from kit.worlds.service.clients import URL
from kit.worlds.service.context_service import context_app
from kit.worlds.service.faults import by_header


def world_at(folder: Path, today: str | None = None) -> World:
    """The world in a folder on a day, its own when none is named; read once while its files stay
    the same. Raises DataError."""
    meta = folder / "meta.json"
    if meta.exists():
        world = _world(folder, meta.stat().st_mtime_ns)
    else:
        world = load_world(folder)
    if today not in (None, world.as_of):
        return replace(world, meta=world.meta.model_copy(update={"as_of": today}))
    return world


def today(data: Path, environment: Mapping[str, str]) -> str | None:
    """The world's own day; None where the services are elsewhere. Raises DataError."""
    if URL in environment:
        return None
    return load_meta(data / "meta.json").as_of


@lru_cache(maxsize=2)
def _world(folder: Path, _: int) -> World:
    return load_world(folder)


def context_service(world: World, pace: float, key: str | None = None) -> Starlette:
    """The context service; a request that asks for a fault gets it. With a `key` it signs its envelopes."""
    return context_app(catalogue(world), latency=pace, faults=by_header, key=key)


def support_service(world: World, pace: float) -> Starlette:
    """The support service; a request that asks for a fault gets it."""
    return support_app(world, pace=pace, faults=lines_by_header)
