"""The counter of replies for another principal, sent to an OpenTelemetry collector when one comes in."""

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics import MeterProvider

COUNTER = "ps6.envelope.principal_mismatch_total"


class AlertCounter:
    """Counts from the first alert on; nothing of OpenTelemetry is loaded before."""

    def __init__(self, collector: str, service: str):
        self._service = service
        self._url = f"{collector}/v1/metrics"
        self._meters: MeterProvider | None = None
        self._lock = threading.Lock()

    def add(self) -> None:
        """Counts one and sends the count at once, from a thread of its own."""
        threading.Thread(target=self._send, name="kit-otel-alert", daemon=True).start()

    def _send(self) -> None:
        with self._lock:
            meters = self._meters = self._meters or _meters(self._url, self._service)
            meters.get_meter("kit").create_counter(COUNTER).add(1, {"consumer": "consumer-agent"})
            meters.force_flush()


def _meters(url: str, service: str) -> "MeterProvider":
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
    from opentelemetry.sdk.resources import Resource

    reader = PeriodicExportingMetricReader(OTLPMetricExporter(url, timeout=2))
    return MeterProvider([reader], Resource({"service.name": service}))
