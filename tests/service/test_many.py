"""Many at once, and anything at all: nothing crosses, nothing is lost, nothing breaks the server."""

import asyncio
import json
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kit.models.scripted import Line
from kit.service.api import create_app
from kit.service.limits import Limits
from tests.service.servers import ACME, chat, frames

pytestmark = pytest.mark.realtime
TENANTS = 20
STREAMS = 200
MANY = Limits(turns_at_once=STREAMS, turns_a_minute=10 * STREAMS)


def repeats(messages: list[Any]) -> Line:
    """A sub-agent that says everything that it is told."""
    return Line(" / ".join(str(message.content) for message in messages[1:]), delay=0.05)


@pytest.mark.req("AS-19")
async def test_of_twenty_tenants_at_once_in_sessions_of_one_id_none_reads_of_another() -> None:
    async with chat(words=repeats, limits=MANY) as api:

        async def talk(number: int) -> list[str]:
            who = {"X-Tenant-Id": f"tenant-{number:02}", "X-User-Id": "alice"}
            texts: list[str] = []
            for turn in range(3):
                message = f"word-of-{number:02} number {turn}"
                async with api.stream(message, who, session="same") as response:
                    texts += [json.dumps(frame.data) async for frame in frames(response)]
            return texts

        told = await asyncio.gather(*(talk(number) for number in range(TENANTS)))
    for number, texts in enumerate(told):
        everything = "\n".join(texts)
        assert f"word-of-{number:02} number 2" in everything
        for other in range(TENANTS):
            is_own = other == number
            assert (f"word-of-{other:02}" in everything) is is_own
            assert (f"tenant-{other:02}" in everything) is is_own


@pytest.mark.req("AS-15")
async def test_two_hundred_streams_at_once_arrive_whole_and_in_order() -> None:
    async with chat(seconds=1.0, limits=MANY) as api:

        async def read(number: int) -> None:
            async with api.stream(session=f"s{number}") as response:
                assert response.status_code == 200
                told = [frame async for frame in frames(response)]
            *events, end = told
            numbers = [frame.id for frame in events]
            assert numbers == list(range(len(events)))
            assert (end.kind, end.data["response"]) == ("result", "It is tea.")

        await asyncio.gather(*(read(number) for number in range(STREAMS)))
        assert not len(api.kit.turns)


DOCUMENT = create_app().openapi()
OPERATIONS = [
    (method, path)
    for path, methods in DOCUMENT["paths"].items()
    for method in methods
    if path not in ("/health", "/ready")
]
WORDS = st.text(max_size=30) | st.sampled_from(
    ["acme", "alice", "s1", "plan_x", "session", "1", "\ud800"]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=6,
)
FIELDS = st.dictionaries(
    st.sampled_from(
        [
            "tenant_id",
            "user_id",
            "session_id",
            "message",
            "stream",
            "answers",
            "persona",
            "policies",
        ]
    ),
    JSON | WORDS,
)
RIGHT = {"tenant_id": "acme", "user_id": "alice", "session_id": "s1", "message": "hello"}
OTHERS = {**RIGHT, "tenant_id": "globex"}


@st.composite
def requests(draw: st.DrawFn) -> dict[str, Any]:
    """A request to some endpoint, right in most places and odd in some."""
    method, path = draw(st.sampled_from(OPERATIONS))
    for name in ("turn_id", "plan_id", "tenant_id"):
        value = draw(st.just("acme") | st.text(min_size=1, max_size=20))
        path = path.replace(f"{{{name}}}", quote(value, safe=""))
    content = draw(
        st.sampled_from([RIGHT, OTHERS]) | st.builds(lambda odd: {**RIGHT, **odd}, FIELDS) | JSON
    )
    names = st.sampled_from(["tenant_id", "user_id", "query_text", "top_k", "scope", "limit"])
    query = draw(
        st.dictionaries(names, WORDS.map(lambda text: text.encode(errors="replace").decode()))
    )
    headers = {**ACME}
    name = st.sampled_from(["X-Session-Id", "Last-Event-ID", "Idempotency-Key", "X-Api-Key"])
    text = st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=20)
    headers |= draw(st.dictionaries(name, text))
    return {
        "method": method.upper(),
        "url": path,
        "content": json.dumps(content).encode(),
        "params": query,
        "headers": {**headers, "content-type": "application/json"},
    }


@pytest.mark.req("AS-22")
async def test_no_request_at_all_breaks_the_server() -> None:
    asked: list[dict[str, Any]] = []

    @settings(
        max_examples=300,
        derandomize=True,
        deadline=None,
        database=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
    @given(requests())
    def gather(request: dict[str, Any]) -> None:
        asked.append(request)

    gather()
    statuses: set[int] = set()
    async with chat(limits=MANY) as api:
        for request in asked:
            response = await api.http.request(**request)
            assert response.status_code < 500, (request, response.text)
            statuses.add(response.status_code)
        assert (await api.http.get("/ready")).status_code == 200
    assert {200, 404, 422} <= statuses
