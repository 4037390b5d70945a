"""A text that grows on the page: drawn in blocks, of which only the last one is drawn again."""

import re

from streamlit.delta_generator import DeltaGenerator

from kit.ui.shared.wording import prose

BLOCK = 2_000
"""Characters after which a block ends with its paragraph."""
STEP = 64
"""A block is drawn again once it has grown by one part in so many: a paragraph without end is not sent without end."""
_PARAGRAPH = re.compile(r"\n\n(?=[^\W\d_]|\*\*|#)")
"""Where a new paragraph begins that is no part of a list, a table or a quotation."""


def blocks(text: str) -> list[str]:
    """Cuts a text into blocks, joined by an empty line; more text behind it changes only the last one."""
    parts: list[str] = []
    start = 0
    for cut in _PARAGRAPH.finditer(text):
        if cut.start() - start >= BLOCK and text.count("```", start, cut.start()) % 2 == 0:
            parts.append(text[start : cut.start()])
            start = cut.end()
    return [*parts, text[start:]]


class GrowingText:
    """A place for a model's text."""

    def __init__(self, container: DeltaGenerator):
        self._place = container
        self._slots: list[DeltaGenerator] = []
        self._parts: list[str] = []
        self._text = ""

    def draw(self, text: str, *, whole: bool) -> None:
        """Brings the place up to date; unless it is `whole`, the end of a long block may wait for
        more or for a pause."""
        still = text == self._text
        self._text = text
        if text:
            parts = blocks(text)
        else:
            parts = []
        for number, part in enumerate(parts):
            if number == len(self._slots):
                self._slots.append(self._place.empty())
                self._parts.append("")
            growth = len(part) - len(self._parts[number])
            last = number == len(parts) - 1
            if part != self._parts[number] and (
                whole or still or not last or not 0 < growth < len(part) // STEP
            ):
                self._slots[number].markdown(prose(part))
                self._parts[number] = part
        for number in range(len(parts), len(self._slots)):
            self._slots[number].empty()
            self._parts[number] = ""
