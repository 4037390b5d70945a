"""A place of a page that is sent to the browser again only where it shows something else."""

from collections.abc import Callable

from streamlit.delta_generator import DeltaGenerator


class Place:
    """A slot of a page, and what it shows now; nothing at first."""

    def __init__(self, slot: DeltaGenerator):
        self.slot = slot
        self._picture: object = ""

    def is_new(self, picture: object) -> bool:
        """Whether the place shows something else than this; from now on it shows this."""
        if self._picture == picture:
            return False
        self._picture = picture
        return True

    def html(self, text: str) -> None:
        """Shows HTML; nothing for an empty text."""
        self._show(text, self.slot.html)

    def markdown(self, text: str) -> None:
        """Shows markdown; nothing for an empty text."""
        self._show(text, self.slot.markdown)

    def caption(self, text: str) -> None:
        """Shows a small line; nothing for an empty text."""
        self._show(text, self.slot.caption)

    def _show(self, text: str, draw: Callable[[str], object]) -> None:
        if not self.is_new(text):
            return
        if text:
            draw(text)
        else:
            self.slot.empty()
