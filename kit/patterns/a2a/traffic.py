"""What one call to a peer carried: its messages and their bytes, as a wire would have them."""

import asyncio
import json
from dataclasses import dataclass

from a2a.types import SendMessageRequest, StreamResponse
from google.protobuf.json_format import MessageToDict


@dataclass(slots=True)
class Traffic:
    """The messages of one call, as they cross a wire."""

    messages: int = 0
    bytes_out: int = 0
    bytes_in: int = 0
    writing: float = 0.0

    def send(self, request: SendMessageRequest) -> int:
        """Counts a message to the peer; returns its bytes."""
        size = self._size(request, (",", ":"))
        self.bytes_out += size
        return size

    def receive(self, update: StreamResponse) -> int:
        """Counts a message from the peer; returns its bytes."""
        size = self._size(update, (", ", ": "))
        self.bytes_in += size
        return size

    def _size(
        self, message: SendMessageRequest | StreamResponse, separators: tuple[str, str]
    ) -> int:
        clock = asyncio.get_running_loop().time
        began = clock()
        fields = MessageToDict(message)
        fields.get("statusUpdate", fields.get("task", {})).get("status", {}).pop(
            "timestamp", None
        )  # of no fixed length
        text = json.dumps(fields, separators=separators, ensure_ascii=False).encode()
        self.writing += clock() - began
        self.messages += 1
        return len(text)
