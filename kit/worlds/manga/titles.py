"""What the manga library tells of its titles: what readers made of them, what may be told of a
story and what may not."""

from typing import Any

from kit.core.context import Principal
from kit.worlds.manga.library import NEW, Library, Title, words
from kit.worlds.service.parameters import Parameters
from kit.worlds.service.search import Index, SearchResult

Payload = dict[str, Any]
RULE = "Tell how an arc begins and what is at stake; keep back how it ends, and what it reveals."


def catalog(library: Library, principal: Principal, parameters: Parameters) -> Payload:
    """Titles that fit the words asked for, best reviewed first; newest first where something new is asked for."""
    result = library.index.search(parameters.text)
    rows = result.rows
    if any(
        word in parameters.text.lower().split()
        for word in ("new", "newer", "newest", "recent", "latest")
    ):
        rows = tuple(sorted(rows, key=lambda title: -title.year))
    return _page([_title_payload(title) for title in rows[: parameters.limit]], result)


def prefs(library: Library, principal: Principal, parameters: Parameters) -> Payload:
    """What a reader likes, and well-reviewed titles of those genres that are not read yet."""
    reader = library.readers.get((principal.tenant_id, principal.user_id), NEW)
    fresh = [
        t
        for t in library.index.rows
        if (not reader.likes or t.genres[0] in reader.likes) and t.id not in reader.read
    ]
    result = Index(fresh, words).search(parameters.text)
    rows = result.rows if result.match == "named" else tuple(fresh)
    return {
        **_page([_title_payload(title) for title in rows[: parameters.limit]], result),
        "likes": list(reader.likes),
        "dislikes": reader.dislikes,
        "read": [library.titles[key].title for key in reader.read],
    }


def sentiment(library: Library, principal: Principal, parameters: Parameters) -> Payload:
    """What reviewers make of the titles asked for."""
    result = library.index.search(parameters.text)
    rows = [
        {**_title_payload(title), **title.reviews.model_dump()}
        for title in result.rows[: parameters.limit]
    ]
    return _page(rows, result)


def links(library: Library, principal: Principal, parameters: Parameters) -> Payload:
    """How the titles asked for hang together with others."""
    titles = library.titles
    result = library.index.search(parameters.text)
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
    return _page(rows, result)


def policy(library: Library, principal: Principal, parameters: Parameters) -> Payload:
    """What may be told of a story: the rule, and of each arc its beginning alone."""
    result = library.index.search(parameters.text)
    rows = [
        {
            **_title_payload(title),
            "arcs": [arc.model_dump(exclude={"hidden"}) for arc in title.arcs],
        }
        for title in result.rows[: min(2, parameters.limit)]
    ]
    return {**_page(rows, result), "rule": RULE}


def _page(rows: list[Payload], result: SearchResult[Any]) -> Payload:
    return {"titles": rows, "match": result.match, "topic": result.topic, "found": len(result.rows)}


def _title_payload(title: Title) -> Payload:
    return title.model_dump(
        include={"id", "title", "studio", "year", "genres", "volumes", "running", "premise"}
    )
