"""What the manga library tells of its titles: what readers made of them, what may be told of a
story and what may not."""

from typing import Any

from kit.core.context import Principal
from kit.worlds.manga.library import NEW, TALK, Library, Title, words
from kit.worlds.manga.names import Names, named_titles
from kit.worlds.service.parameters import Parameters
from kit.worlds.service.search import Index, SearchResult

Payload = dict[str, Any]
RULE = "Tell how an arc begins and what is at stake; keep back how it ends, and what it reveals."


def catalog(library: Library, principal: Principal, parameters: Parameters) -> Payload:
    """Titles that fit the words asked for, best reviewed first; newest first where something new is asked for."""
    result, names = _search(library, parameters, by_name=False)
    rows = result.rows
    if any(
        word in parameters.text.lower().split()
        for word in ("new", "newer", "newest", "recent", "latest")
    ):
        rows = tuple(sorted(rows, key=lambda title: -title.year))
    return _page([_title_payload(title) for title in rows[: parameters.limit]], result, names)


def prefs(library: Library, principal: Principal, parameters: Parameters) -> Payload:
    """What a reader likes, and well-reviewed titles of those genres that are not read yet."""
    reader = library.readers.get((principal.tenant_id, principal.user_id), NEW)
    fresh = [
        t
        for t in library.index.rows
        if (not reader.likes or t.genres[0] in reader.likes) and t.id not in reader.read
    ]
    result = Index(fresh, words, talk=TALK).search(parameters.text)
    if result.match == "named":
        rows = result.rows
    else:
        rows = tuple(fresh)
    names = named_titles(library, parameters.text)
    return {
        **_page([_title_payload(title) for title in rows[: parameters.limit]], result, names),
        "likes": list(reader.likes),
        "dislikes": reader.dislikes,
        "read": [library.titles[key].title for key in reader.read],
    }


def sentiment(library: Library, principal: Principal, parameters: Parameters) -> Payload:
    """What reviewers make of the titles asked for."""
    result, names = _search(library, parameters)
    rows = [
        {**_title_payload(title), **title.reviews.model_dump()}
        for title in result.rows[: parameters.limit]
    ]
    return _page(rows, result, names)


def links(library: Library, principal: Principal, parameters: Parameters) -> Payload:
    """How the titles asked for hang together with others."""
    titles = library.titles
    result, names = _search(library, parameters)
    rows = [
        {
            **_title_payload(title),
            "links": [
                {"how": link.how, "id": link.id, "title": titles[link.id].title}
                for link in title.links
            ],
        }
        for title in result.rows[: parameters.limit]
    ]
    return _page(rows, result, names)


def policy(library: Library, principal: Principal, parameters: Parameters) -> Payload:
    """What may be told of a story: the rule, and of each arc its beginning alone."""
    result, names = _search(library, parameters)
    rows = [
        {
            **_title_payload(title),
            "arcs": [arc.model_dump(exclude={"hidden"}) for arc in title.arcs],
        }
        for title in result.rows[: min(2, parameters.limit)]
    ]
    return {**_page(rows, result, names), "rule": RULE}


def _search(
    library: Library, parameters: Parameters, *, by_name: bool = True
) -> tuple[SearchResult[Title], Names]:
    """Returns the titles asked for, and what of the names is not there.

    Titles that are named are given and no others, unless not `by_name`: then a name says what they should be like. In
    place of a name that is not there nothing is given; the close ones are told beside it.
    """
    text = parameters.text
    names = named_titles(library, text)
    if by_name and names.titles:
        topic = " ".join(title.title for title in names.titles)
        return SearchResult(names.titles, "named", topic), names
    if names.unknown and (by_name or not names.titles):
        return SearchResult((), "closest"), names
    return library.index.search(text), names


def _page(rows: list[Payload], result: SearchResult[Any], names: Names) -> Payload:
    return {
        "titles": rows,
        "match": result.match,
        "topic": result.topic,
        "found": len(result.rows),
        "unknown": [name.model_dump() for name in names.unknown],
    }


def _title_payload(title: Title) -> Payload:
    return title.model_dump(
        include={"id", "title", "studio", "year", "genres", "volumes", "running", "premise"}
    )
