"""How names, counts and texts read on a page, with nothing in them that acts."""

import re
from html import escape
from typing import Literal

Tone = Literal["", "busy", "good", "bad", "warn"]
LONGEST = 1_200
"""Characters of a text from outside that are repeated on a page."""


def many(count: int, noun: str) -> str:
    """Returns the count and its noun: `1 turn`, `2,000 turns`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def label(agent: str) -> str:
    """Returns an agent's id in plain words, as a heading."""
    return agent.replace("_", " ").replace("-", " ").strip().capitalize()


def prose(text: str) -> str:
    """Returns a model's text as markdown: `$` is money, not mathematics, and no picture is fetched from anywhere."""
    return re.sub(r"\\*\$", r"\\$", text).replace("![", r"!\[")


def literal(text: str, longest: int = LONGEST) -> str:
    """Returns a text from outside as it was written: no markdown in it acts."""
    start = text if len(text) <= longest else text[:longest] + " …"
    return re.sub(r"([\\`*_{}\[\]()#+\-.!~|>$:<&@/])", r"\\\1", start).replace("\n", "  \n")


def tag_html(text: str, tone: str = "", why: str = "") -> str:
    """Returns a word or two that stand out, as HTML; `why` is shown to whoever rests on them."""
    title = f' title="{escape(why)}"' if why else ""
    return f'<i class="tag {tone}"{title}>{escape(text)}</i>'
