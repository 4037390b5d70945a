"""A reply for another principal is told when it comes in: log, store and collector have it though
the turn never ends."""

import os
import signal
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from kit.metrics.alert import MISMATCH, alerts
from kit.metrics.summary import metrics
from kit.stores.sqlite import SqliteStore
from tests.loopback_otlp import OtlpReceiver, otlp_receiver

TURN = """
import asyncio
from kit.core.bodies.call import Envelope
from kit.wire import open_kit

async def main():
    async with open_kit(faults=True) as kit:
        faults = ["rewards=foreign_principal", "shop=hang"]
        turn = kit.ask("How many points do I have, and find coffee deals", kit.session("s"), faults=faults)
        async for event in turn:
            if isinstance(event.body, Envelope) and not event.body.principal_verified:
                print(turn.id, flush=True)
                await asyncio.sleep(3600)

asyncio.run(main())
"""

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
        environment = {**os.environ, **settings}
        process = subprocess.Popen(
            [sys.executable, "-c", TURN],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            assert process.stdout is not None
            turn_id = process.stdout.readline().strip()
            arrived = counted(receiver)
            wait_for_the_store(path)
        finally:
            process.send_signal(signal.SIGKILL)
            _, logged = process.communicate()
    assert arrived == [("ps6.envelope.principal_mismatch_total", "consumer-agent", 1)]
    assert f"{MISMATCH}: 1 in turn {turn_id}" in logged
    store = SqliteStore(path)
    [turn] = store.turns()
    assert (turn.id, turn.status) == (turn_id, "interrupted")
    assert [alert.turn_ids for alert in alerts(store.tally().mismatches)] == [(turn_id,)]
    assert metrics(store).number(MISMATCH) == 1
    store.close()
