"""A reply for another principal is told when it comes in: log, store and collector have it though
the turn never ends."""

import asyncio
import os
import time
from collections.abc import Mapping
from contextlib import closing, redirect_stderr
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from kit.core.bodies.call import Envelope
from kit.metrics.alert import MISMATCH, alerts
from kit.metrics.summary import metrics
from kit.stores.sqlite import SqliteStore
from kit.wire import open_kit
from tests.forks import FORKS, started
from tests.loopback_otlp import OtlpReceiver, otlp_receiver


def break_a_turn(environment: Mapping[str, str], errors: Path, told: Connection) -> None:
    """Has the envelope of a sub-agent name somebody else in a turn that then does not end, and tells its id."""

    async def ask() -> None:
        async with open_kit(faults=True) as kit:
            message = "How many points do I have, and find coffee deals"
            faults = ["rewards=foreign_principal", "shop=hang"]
            turn = kit.ask(message, kit.session("s"), faults=faults)
            async for event in turn:
                if isinstance(event.body, Envelope) and not event.body.principal_verified:
                    told.send(turn.id)
                    await asyncio.sleep(3600)

    os.environ.update(environment)
    with errors.open("w", buffering=1) as file, redirect_stderr(file):
        asyncio.run(ask())


PATIENCE = 120.0
"""Seconds in which whatever does not hang has arrived."""


def counted(receiver: OtlpReceiver) -> list[tuple[str, str, int]]:
    """The counters that arrive, as (name, consumer, count)."""
    until = time.monotonic() + PATIENCE
    while not receiver.metrics and time.monotonic() < until:
        time.sleep(0.05)
    metrics_of = [
        scope.metrics
        for sent in receiver.metrics
        for r in sent.resource_metrics
        for scope in r.scope_metrics
    ]
    points = [
        (metric.name, point)
        for found in metrics_of
        for metric in found
        for point in metric.sum.data_points
    ]
    return [(name, point.attributes[0].value.string_value, point.as_int) for name, point in points]


def wait_for_the_store(path: Path) -> None:
    """Waits until the file has the alert of the running turn: its log is written once a second."""
    until = time.monotonic() + PATIENCE
    with closing(SqliteStore(path)) as store:
        while not store.tally().mismatches and time.monotonic() < until:
            time.sleep(0.05)


@pytest.mark.realtime
@pytest.mark.req("PC2-S5.6n", "PC2-NFR-4")
def test_a_process_that_is_killed_in_the_turn_leaves_the_alert_in_log_store_and_collector(
    tmp_path: Path,
):
    path = tmp_path / "kit.db"
    with otlp_receiver() as receiver:
        settings = {
            "KIT_STORE": str(path),
            "KIT_MODEL": "offline",
            "OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url,
        }
        hears, tells = FORKS.Pipe(duplex=False)
        process = started(break_a_turn, settings, tmp_path / "errors", tells)
        try:
            turn_id = hears.recv()
            arrived = counted(receiver)
            wait_for_the_store(path)
        finally:
            process.kill()
            process.join()
    assert arrived == [("ps6.envelope.principal_mismatch_total", "consumer-agent", 1)]
    assert f"{MISMATCH}: 1 in turn {turn_id}" in (tmp_path / "errors").read_text()
    store = SqliteStore(path)
    [turn] = store.turns()
    assert (turn.id, turn.status) == (turn_id, "interrupted")
    assert [alert.turn_ids for alert in alerts(store.tally().mismatches)] == [(turn_id,)]
    assert metrics(store).number(MISMATCH) == 1
    store.close()
