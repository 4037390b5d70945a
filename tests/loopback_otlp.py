"""An OTLP/HTTP receiver on 127.0.0.1: parses what arrives with the protocol's own protobuf classes."""

import gzip
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import cast

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)


class OtlpReceiver(ThreadingHTTPServer):
    """What arrived, as (path, request) pairs. `status` is what it answers with."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.requests: list[tuple[str, ExportTraceServiceRequest]] = []
        self.metrics: list[ExportMetricsServiceRequest] = []
        self.status = 200

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        receiver = cast(OtlpReceiver, self.server)
        raw = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            raw = gzip.decompress(raw)
        if self.path.endswith("/v1/metrics"):
            receiver.metrics.append(ExportMetricsServiceRequest.FromString(raw))
        else:
            receiver.requests.append((self.path, ExportTraceServiceRequest.FromString(raw)))
        payload = ExportTraceServiceResponse().SerializeToString()
        self.send_response(receiver.status)
        self.send_header("Content-Type", "application/x-protobuf")
        self.send_header("Content-Length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""


@contextmanager
def otlp_receiver() -> Generator[OtlpReceiver]:
    """The receiver on a free port, until the end of the block."""
    receiver = OtlpReceiver()
    thread = threading.Thread(
        target=receiver.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
    )
    thread.start()
    try:
        yield receiver
    finally:
        receiver.shutdown()
        receiver.server_close()
        thread.join(5)
