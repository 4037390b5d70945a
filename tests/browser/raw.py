"""A visitor without a browser: Streamlit's own messages over its socket, for counting what many of
them cost the server."""

import os
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.sync.client import connect
from websockets.sync.connection import Connection

LONGEST = 120.0
"""Seconds without a word after which a page hangs: only a hang takes so long, also on a busy machine."""


@dataclass
class RawVisitor:
    """One open page: it runs the script and asks, and looks at nothing."""

    socket: Connection
    address: str = ""
    box: str = ""
    """Id of the chat's input."""
    received: int = 0
    """Bytes so far."""
    text: str = ""
    """All that the last run of the page was told, as text."""
    buttons: dict[str, str] = field(default_factory=dict[str, str])
    """Label -> id."""
    redirect: str = ""
    """Where the page sends the browser for a login."""

    def run(self, question: str = "", page: str = "", click: str = "") -> None:
        """Runs the page, with a question or without, until it is done: with a question, until the turn is."""
        message = BackMsg()
        message.rerun_script.query_string = self.address
        message.rerun_script.page_name = page
        self.text = ""
        if question:
            widget = message.rerun_script.widget_states.widgets.add(id=self.box)
            widget.chat_input_value.data = question
        if click:
            message.rerun_script.widget_states.widgets.add(
                id=self.buttons[click], trigger_value=True
            )
        self.socket.send(message.SerializeToString())
        while True:
            message_bytes = bytes(self.socket.recv(timeout=LONGEST))  # type: ignore[arg-type]
            self.received += len(message_bytes)
            said = ForwardMsg.FromString(message_bytes)
            self.text += str(said)
            if said.delta.new_element.HasField("chat_input"):
                self.box = said.delta.new_element.chat_input.id
            if said.delta.new_element.HasField("button"):
                button = said.delta.new_element.button
                self.buttons[button.label] = button.id
            if said.HasField("auth_redirect"):
                self.redirect = said.auth_redirect.url
            if said.HasField("page_info_changed"):
                self.address = said.page_info_changed.query_string
            if said.WhichOneof("type") == "script_finished":
                return


@contextmanager
def raw_visitor(
    url: str, headers: Mapping[str, str] | None = None, subprotocols: Sequence[str] = ()
) -> Generator[RawVisitor]:
    """Opens the chat's socket."""
    with connect(
        url.replace("http", "ws", 1) + "/_stcore/stream",
        origin=url,  # type: ignore
        max_size=None,
        additional_headers=headers,
        subprotocols=subprotocols or None,  # type: ignore
    ) as socket:
        yield RawVisitor(socket)


def processor(process_id: int) -> float:
    """Seconds of a core that a process has had."""
    fields = Path(f"/proc/{process_id}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident(process_id: int) -> float:
    """MiB of memory that a process holds."""
    for line in Path(f"/proc/{process_id}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise AssertionError(f"/proc says nothing of process {process_id}")
