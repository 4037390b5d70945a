"""The pictures of this process' newest turns, for their thumbnails: no store keeps their bytes."""

import threading
from collections.abc import Sequence

from kit.core.picture import Picture

ROOM = 32 * 2**20
"""Bytes of all pictures together; the oldest go first, and only their names are shown from then on."""


class PictureCache:
    """The pictures of turns by turn id. Any thread may use it."""

    def __init__(self, room: int = ROOM):
        self._room = room
        self._lock = threading.Lock()
        self._pages: dict[str, tuple[Picture, ...]] = {}

    def of(self, turn_id: str) -> tuple[Picture, ...]:
        """Returns the pictures of a turn; none when it had none or they are gone."""
        with self._lock:
            return self._pages.get(turn_id, ())

    def keep(self, turn_id: str, pictures: Sequence[Picture]) -> None:
        """Keeps the pictures of a turn as long as there is room."""
        if not pictures:
            return
        with self._lock:
            self._pages[turn_id] = tuple(pictures)
            # The newest stay however large they are: their question is on the page right now.
            while (
                sum(len(picture.data) for page in self._pages.values() for picture in page)
                > self._room
                and len(self._pages) > 1
            ):
                del self._pages[next(iter(self._pages))]
