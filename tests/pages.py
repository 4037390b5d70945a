"""Texts of pages: a page of docs as one line, so that a quotation is found wherever its lines break, and markdown as it reads."""

import re

from kit.bench.home import HOME


def flat_page(name: str) -> str:
    return " ".join((HOME / "docs" / name).read_text().split())


def unescaped(markdown: str) -> str:
    """The text that escaped markdown shows."""
    return re.sub(r"\\([^\w\s])", r"\1", markdown)


def marks(markdown: str) -> list[str]:
    """What in a text would act as a link, a picture, mathematics, code or a tag."""
    return re.findall(r"[`$<]|]\(|!\[", re.sub(r"\\[^\w\s]", ".", markdown))
