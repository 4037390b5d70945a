"""Characters of foreign text that no person reads: a terminal obeys control characters, and half of a surrogate pair
has no place in UTF-8."""

import re

_SEQUENCE = re.compile(
    r"(?:\x1b\]|\x9d)[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)"  # OSC: the title of a window, its clipboard
    r"|(?:\x1b[PX^_]|[\x90\x98\x9e\x9f])[^\x1b\x9c]*(?:\x1b\\|\x9c)"  # DCS, SOS, PM, APC: strings
    r"|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI: the cursor, colours, the screen
    r"|\x1b[ -/]*[0-~]"
)
"""A whole escape sequence, so that no half of it is left as words."""
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
"""C0 and C1 but for the line break and the tab, and halves of surrogate pairs."""


def without_controls(text: str) -> str:
    """Returns a text without escape sequences, control characters and halves of surrogate pairs; line breaks and tabs
    stay, and two halves that belong together become their character."""
    if not CONTROL.search(text):
        return text
    text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "ignore")
    return CONTROL.sub("", _SEQUENCE.sub("", text))
