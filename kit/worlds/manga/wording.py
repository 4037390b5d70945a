"""What the manga deck's leaf skills understand of their payloads, and how they tell them."""

from collections.abc import Mapping

from kit.core.envelope import Inbound
from kit.tools.enricher import Rendering, Wording
from kit.worlds.service.wording import Searched, components, join_words


class Title(Inbound):
    id: str
    title: str
    studio: str
    year: int
    genres: tuple[str, ...]
    volumes: int
    running: bool
    premise: str


class Unknown(Inbound):
    name: str
    close: tuple[str, ...]


class Found(Searched):
    """A list of titles, and the names in the request that no title has."""

    unknown: tuple[Unknown, ...] = ()


class Titles(Found):
    titles: tuple[Title, ...]


class Tastes(Titles):
    likes: tuple[str, ...]
    dislikes: str
    read: tuple[str, ...]


class Reviewed(Title):
    count: int
    score: int
    praise: str
    complaint: str


class Reviews(Found):
    titles: tuple[Reviewed, ...]


class Link(Inbound):
    how: str
    id: str
    title: str


class Linked(Title):
    links: tuple[Link, ...]


class Links(Found):
    titles: tuple[Linked, ...]


class Arc(Inbound):
    name: str
    first: int
    last: int
    gist: str


class Story(Title):
    arcs: tuple[Arc, ...]


class Stories(Found):
    titles: tuple[Story, ...]
    rule: str


def catalog(page: Titles) -> Rendering:
    return _render_titles([_line(title) for title in page.titles], page)


def tastes(page: Tastes) -> Rendering:
    taste = "Nothing is known of what the reader likes."
    if page.likes:
        taste = f"The reader likes {join_words(page.likes)}, not {page.dislikes}, and has read {join_words(page.read)}."
    sentence = _render_titles([_line(title) for title in page.titles], page)
    return Rendering(f"{taste}\n{sentence.text}", sentence.components)


def reviews(page: Reviews) -> Rendering:
    sentence = "{}: {} of 100 from {:,} reviews. Praised for {}. Faulted for {}."
    return _render_titles(
        [sentence.format(_name(t), t.score, t.count, t.praise, t.complaint) for t in page.titles],
        page,
    )


def links(page: Links) -> Rendering:
    lines = [
        f"{_name(t)}: {join_words([f'{link.how} {link.title}' for link in t.links])}."
        for t in page.titles
    ]
    return _render_titles(lines, page)


def stories(page: Stories) -> Rendering:
    arcs = [(title, arc) for title in page.titles for arc in title.arcs]
    lines = [
        f"{_name(title)}, {arc.name}, chapters {arc.first} to {arc.last}: {arc.gist}."
        for title, arc in arcs
    ]
    sentence = _render_titles(lines, page)
    if not lines:  # nothing is told that the rule could hold for
        return sentence
    return Rendering(f"{page.rule}\n{sentence.text}", sentence.components)


def _render_titles(lines: list[str], page: Titles | Reviews | Links | Stories) -> Rendering:
    missing = [_missing(unknown) for unknown in page.unknown]
    if page.match == "closest" and page.topic:
        missing.append(f'No titles for "{page.topic}" were found.')
    text = "\n".join([*missing, *lines]) or "No title was found."
    return Rendering(text, components("title", page.titles))


def _missing(unknown: Unknown) -> str:
    sentence = f'There is no title called "{unknown.name}" in this library'
    if not unknown.close:
        return f"{sentence}."
    return f"{sentence}; close ones are {join_words(unknown.close)}."


def _name(title: Title) -> str:
    """The id comes first, for agents whose schema asks for it; in prose nobody repeats it."""
    return f"{title.id} {title.title}"


def _line(title: Title) -> str:
    if title.running:
        state = "still running"
    else:
        state = "complete"
    volumes = f"{title.volumes} volume{'s' if title.volumes > 1 else ''}"
    return f"{_name(title)} ({title.year}, {join_words(title.genres)}, {volumes}, {state}): {title.premise}."


WORDINGS: Mapping[tuple[str, str], Wording] = {
    ("manga", "catalog"): Wording(Titles, catalog),
    ("manga", "prefs"): Wording(Tastes, tastes),
    ("manga", "sentiment"): Wording(Reviews, reviews),
    ("manga", "links"): Wording(Links, links),
    ("manga", "policy"): Wording(Stories, stories),
}
"""(domain type, enricher id) -> payload and its wording."""
