"""Texts of pages: a page of docs as one line, so that a quotation is found wherever its lines
break, and markdown as it reads."""

import re

from kit.home import HOME


def flat_page(name: str) -> str:
    return " ".join((HOME / "docs" / name).read_text().split())


def unescaped(markdown: str) -> str:
    """The text that escaped markdown shows."""
    return re.sub(r"\\([^\w\s])", r"\1", markdown).replace("\u2060", "")


def marks(markdown: str) -> list[str]:
    """What in a text would act as a link, a picture, mathematics, code or a tag; an address acts escaped as well."""
    addresses = re.findall(
        r"(?:https?|ftp)://|www\.|\w@\w", re.sub(r"\\([^\w\s])", r"\1", markdown)
    )
    return addresses + re.findall(r"[`$<]|]\(|!\[", re.sub(r"\\[^\w\s]", ".", markdown))
