"""A word or two that stand out, in HTML and in markdown alike."""

from typing import Literal

from markupsafe import Markup

from kit.core.value import Value

Tone = Literal["", "busy", "good", "bad", "warn"]
COLOURS: dict[Tone, str] = {
    "good": "green",
    "bad": "red",
    "warn": "orange",
    "busy": "blue",
    "": "gray",
}
"""Tone -> Streamlit's name of its colour."""


class Tag(Value):
    """A word or two that stand out; a template that is given one draws it."""

    text: str
    tone: Tone = ""
    why: str = ""
    """More, shown as a tooltip."""

    def __html__(self) -> str:
        if self.why:
            html = Markup('<i class="tag {}" title="{}">{}</i>')
            return html.format(self.tone, self.why, self.text)
        return Markup('<i class="tag {}">{}</i>').format(self.tone, self.text)

    def badge(self) -> str:
        """Returns the same as a badge of markdown."""
        return f":{COLOURS[self.tone]}-badge[{self.text}]"
