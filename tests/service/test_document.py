"""Whatever is sent, the server answers as its OpenAPI document says; its streams too."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import Case, GenerationMode
from schemathesis.core.parameters import ParameterLocation
from schemathesis.core.result import Ok

from kit.service.limits import Limits
from tests.service.servers import ACME, KEYS, TASK, chat, outlets

pytestmark = pytest.mark.realtime
EXAMPLES = int(os.environ.get("KIT_API_EXAMPLES", "8"))
"""Requests to each endpoint that fit the document, and as many that do not; `make sweeps` takes 100."""
MANY = Limits(turns_at_once=1_000, turns_a_minute=100_000)


@pytest.mark.req("AS-22")
async def test_every_endpoint_answers_anything_at_all_as_the_document_says(tmp_path: Path) -> None:
    async with outlets(tmp_path, MANY) as api:
        stored: dict[str, list[str]] = {"tenant_id": ["acme"], "turn_id": [], "plan_id": []}
        for key in (None, KEYS["acme"]):
            headers = {} if key is None else {"X-Api-Key": key}
            result = (await api.run(TASK, headers=headers)).json()
            stored["turn_id"].append(result["turn_id"])
            stored["plan_id"].append(result["plan_id"])
        url = str(api.http.base_url).rstrip("/")
        statuses = await asyncio.to_thread(ask_everything, url, stored)
        assert (await api.http.get("/ready")).status_code == 200
    assert {200, 400, 403, 404, 422} <= statuses


def ask_everything(url: str, stored: dict[str, list[str]]) -> set[int]:
    """Sends requests that fit the document and such that do not; returns the statuses of the replies.

    `stored`: name of a parameter -> ids that there are.
    """
    schema = schemathesis.openapi.from_url(f"{url}/openapi.json")
    statuses: set[int] = set()
    for found in schema.get_all_operations():
        assert isinstance(found, Ok)
        operation = found.ok()
        # They take nothing, so that no request goes against the document.
        if operation.path in ("/health", "/ready", "/metrics"):
            continue
        for mode in GenerationMode:

            @settings(
                max_examples=EXAMPLES,
                derandomize=True,
                deadline=None,
                database=None,
                phases=[Phase.generate],
                suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
            )
            @given(operation.as_strategy(generation_mode=mode), st.data())
            def ask(case: Case, data: Any) -> None:
                odd = odd_places(case)
                name_the_caller(case, odd)
                if ParameterLocation.PATH not in odd:
                    for name, ids in stored.items():
                        if name in case.path_parameters and data.draw(st.booleans()):
                            case.path_parameters[name] = data.draw(st.sampled_from(ids))
                response = case.call(base_url=url, timeout=120)
                statuses.add(response.status_code)
                case.validate_response(response)

            ask()
    return statuses


def odd_places(case: Case) -> set[ParameterLocation]:
    """Returns where a request goes against the document on purpose."""
    assert case.meta is not None
    odd: set[ParameterLocation] = set()
    for location, component in case.meta.components.items():
        if component.mode is GenerationMode.NEGATIVE:
            odd.add(location)
    return odd


def name_the_caller(case: Case, odd: set[ParameterLocation]) -> None:
    """Says who asks wherever a request does not go wrong in just that place."""
    if ParameterLocation.HEADER not in odd:
        case.headers.update({**ACME, "X-Api-Key": KEYS["acme"], "X-Session-Id": "s1"})
    identity = {"tenant_id": "acme", "user_id": "alice", "session_id": "s1"}
    if ParameterLocation.BODY not in odd and isinstance(case.body, dict):
        case.body.update({name: identity[name] for name in identity if name in case.body})
    if ParameterLocation.QUERY not in odd:
        case.query.update({name: identity[name] for name in identity if name in case.query})


ODD = (
    b"",
    b"[" * 100_000,
    b"\xff\xfe",
    b'{"message": "\\ud800", "tenant_id": "acme", "user_id": "alice", "session_id": "s1"}',
    b'{"persona": {"name": "\\ud800"}}',
    b'{"policies": {"a": NaN, "b": 1e999}}',
    b'{"policies": ' + b'{"a":' * 900 + b"1" + b"}" * 900 + b"}",
    b'{"policies": {"a": ' + b"9" * 5_000 + b"}}",
    b'{"persona": {"name": "\\u0000"}, "policies": {"\\u0000": "\\u0000"}}',
)
"""Bodies that no document describes."""


@pytest.mark.req("AS-22")
async def test_no_body_at_all_breaks_the_server() -> None:
    headers = {**ACME, "content-type": "application/json"}
    async with chat(limits=MANY) as api:
        for content in ODD:
            for method, path in (("POST", "/agent/run"), ("PUT", "/agent/souls/acme")):
                reply = await api.http.request(method, path, content=content, headers=headers)
                assert reply.status_code < 500, (content[:80], reply.text)
        assert (await api.run()).json()["status"] == "ok"
