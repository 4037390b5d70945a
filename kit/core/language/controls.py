"""Control characters of foreign text: a terminal obeys them, and no person reads them."""

import re

_SEQUENCE = re.compile(
    r"(?:\x1b\]|\x9d)[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)"  # OSC: the title of a window, its clipboard
    r"|(?:\x1b[PX^_]|[\x90\x98\x9e\x9f])[^\x1b\x9c]*(?:\x1b\\|\x9c)"  # DCS, SOS, PM, APC: strings
    r"|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI: the cursor, colours, the screen
    r"|\x1b[ -/]*[0-~]"
)
"""A whole escape sequence, so that no half of it is left as words."""
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
"""C0 and C1 but for the line break and the tab."""


def without_controls(text: str) -> str:
    """Returns a text without escape sequences and control characters; line breaks and tabs stay."""
    if not CONTROL.search(text):
        return text
    return CONTROL.sub("", _SEQUENCE.sub("", text))
