"""A page of docs as one line: a quotation is found wherever its lines break."""

from kit.bench.home import HOME


def flat_page(name: str) -> str:
    return " ".join((HOME / "docs" / name).read_text().split())
