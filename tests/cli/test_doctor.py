"""`kit doctor` says of each model what works, what does not and what to do, and ends with 1 where a turn would not."""

import json
import re
from pathlib import Path

import pytest
import yaml

from tests.cli.test_cli import Result, refused, run
from tests.loopback_openai import Call, Loopback, Raw, Refuse, Reply, Say

pytestmark = pytest.mark.realtime

ONE = Say(calls=[Call("weather", {"place": "Oslo"})])
TWO = Say(calls=[Call("weather", {"place": "Oslo"}, "a"), Call("weather", {"place": "Rome"}, "b")])
BY_SCHEMA = Say(['{"say": "", "calls": [{"name": "weather", "arguments": {"place": "Oslo"}}]}'])
BOTH = Say(
    [
        json.dumps(
            {
                "say": "",
                "calls": [{"name": "weather", "arguments": {"place": p}} for p in ("Oslo", "Rome")],
            }
        )
    ]
)
NO_JSON = Raw(
    json.dumps(
        {
            "id": "1",
            "object": "chat.completion",
            "created": 1,
            "model": "m",
            "choices": [
                {
                    "index": 0,
                    "finish_reason": "tool_calls",
                    "message": {
                        "role": "assistant",
                        "content": None,
                        "tool_calls": [
                            {
                                "id": "a",
                                "type": "function",
                                "function": {"name": "weather", "arguments": "{Oslo"},
                            }
                        ],
                    },
                }
            ],
        }
    )
)
KEY = "sk-doctor-4711-secret"


def doctor(server: Loopback, *script: Reply, model: str = "gpt-4.1-mini") -> Result:
    server.plays(*script)
    return run("doctor", model, OPENAI_BASE_URL=server.url, OPENAI_API_KEY=KEY)


def states(result: Result) -> dict[str, str]:
    """What was tried -> how it went."""
    return {
        m[1]: m[2]
        for m in re.finditer(r"^  (\S.*?) +(ok|failed|skipped)\b", result.stdout, re.MULTILINE)
    }


def test_a_model_that_does_everything_is_ok_line_by_line(server: Loopback):
    result = doctor(server, Say(["Four."]), Say(["Fo", "ur."]), BY_SCHEMA, ONE, TWO)
    whats = (
        "key",
        "URL",
        "plain call",
        "streaming",
        "JSON schema",
        "tool call",
        "several at once",
        "usage",
        "finish_reason",
    )
    assert result.returncode == 0 and states(result) == dict.fromkeys(whats, "ok"), result.stdout
    assert "found in OPENAI_API_KEY" in result.stdout and KEY not in result.stdout + result.stderr


def test_a_small_model_is_asked_by_schema(server: Loopback):
    result = doctor(server, Say(["Four."]), Say(["Four."]), BY_SCHEMA, BOTH, model="local")
    assert result.returncode == 0 and "failed" not in result.stdout
    assert "response_format" in server.requests[2]


@pytest.mark.parametrize(
    ("script", "what", "words", "code"),
    [
        ((Refuse(401, "wrong key"),), "plain call", "HTTP 401, wrong key; set OPENAI_API_KEY", 1),
        (
            (Say(["Four."]), Say(["Four."], whole=True), BY_SCHEMA, ONE, TWO),
            "streaming",
            "set `stream: false`",
            1,
        ),
        (
            (Say(["Four."]), Say(["Four."]), BY_SCHEMA, Say(["sunny"]), TWO),
            "tool call",
            "set `routing: json_schema`",
            1,
        ),
        (
            (Say(["Four."]), Say(["Four."]), BY_SCHEMA, ONE, ONE),
            "several at once",
            "1 of 2 calls; for an orchestrator set `routing: json_sch",
            1,
        ),
        (
            (Say(["Four."]), Say(["Four."]), Refuse(400, "what?"), ONE, TWO),
            "JSON schema",
            "HTTP 400, what?",
            0,
        ),
        (
            (Say(["Four."]), Say(["Four."]), Say(["no"]), ONE, ONE),
            "several at once",
            "1 of 2 calls; for an orchestrator choose another model",
            1,
        ),
        (
            (Say(["Four."]), Say(["Four."]), BY_SCHEMA, NO_JSON, TWO),
            "tool call",
            "the arguments of its call are no JSON",
            1,
        ),
        (
            (Say(["Four."]), Say(["Four."], usage=(-5, 3)), BY_SCHEMA, ONE, TWO),
            "usage",
            "none that can be: tokens and costs are estimates",
            0,
        ),
        (
            (Say(["Four."], broken=True, whole=True),) * 3,
            "URL",
            "the connection broke in the middle of the reply",
            1,
        ),
        (
            (Say(["Four."]), Say(["Four."], lost=True), BY_SCHEMA, ONE, TWO),
            "finish_reason",
            "cannot be told",
            0,
        ),
        ((Raw("<html></html>"),), "plain call", "this is no answer of the API: check the URL", 1),
    ],
)
def test_what_fails_is_named_with_what_to_do(
    server: Loopback, script: tuple[Reply, ...], what: str, words: str, code: int
):
    result = doctor(server, *script)
    line = next(line for line in result.stdout.splitlines() if line.startswith(f"  {what} "))
    assert "failed" in line and words in line and result.returncode == code, result.stdout
    assert "Traceback" not in result.stderr


def test_the_model_that_stands_in_for_a_failed_one_is_tried_as_well(
    server: Loopback, tmp_path: Path
):
    deck = tmp_path / "helpdesk"
    deck.mkdir()
    model = {"provider": "openai"}
    (tmp_path / "models.yaml").write_text(yaml.safe_dump({"first": model, "second": model}))
    (deck / "deck.yaml").write_text("orchestrator: lead\nrequired_blocks: []\n")
    both = {"model": "first", "fallback_model": "second"}
    lead = {"id": "lead", "description": "Passes questions on.", "sub_agents": ["desk"], **both}
    desk = {"id": "desk", "description": "Knows what the shop has in stock.", **both}
    for card in (lead, desk):
        (deck / f"{card['id']}.yaml").write_text(yaml.safe_dump(card))
    works = (Say(["Four."]), Say(["Fo", "ur."]), BY_SCHEMA, ONE, TWO)
    server.plays(*works, Refuse(401, "wrong key"))
    result = run("doctor", KIT_DECK=str(deck), OPENAI_BASE_URL=server.url, OPENAI_API_KEY=KEY)
    assert "second" in result.stdout and "HTTP 401" in result.stdout, result.stdout
    assert result.returncode == 1


def test_a_server_that_is_not_there_and_a_key_that_is_missing():
    absent = run("doctor", "local", OPENAI_BASE_URL="http://127.0.0.1:9/v1")
    assert absent.returncode == 1 and states(absent) == {"key": "ok", "URL": "failed"}
    assert "nothing answers there: start the server, or correct the URL" in absent.stdout
    missing = run("doctor", "gpt-4.1-mini")
    assert (
        missing.returncode == 1
        and "needs a key or an endpoint: set OPENAI_API_KEY" in missing.stdout
    )
    refused(
        run("doctor", "gpt-4.1-mni"), "unknown model 'gpt-4.1-mni': did you mean 'gpt-4.1-mini'"
    )


def test_without_a_model_it_says_what_is_offline_and_looks_at_store_and_sandbox(
    tmp_path: Path,
):
    result = run("doctor", KIT_STORE=str(tmp_path / "kit.db"))
    assert (
        result.returncode == 0
        and "nothing to reach: the offline stand-in, which is no LLM" in result.stdout
    )
    assert (
        "not in use: gpt-" in result.stdout
        and "5 more models of models.yaml, named by no card; to try one" in result.stdout
    )
    assert f"written          ok       {tmp_path}/kit.db" in result.stdout
    assert re.search(
        r"^sandbox\n  scripts +(ok +(bubblewrap|landlock)|skipped +no sandbox holds on this machine)",
        result.stdout,
        re.M,
    )
    (tmp_path / "file").write_text("")
    unwritable = run("doctor", "--json", KIT_STORE=str(tmp_path / "file" / "kit.db"))
    findings = [json.loads(line) for line in unwritable.stdout.splitlines()]
    (failed,) = [finding for finding in findings if finding["kind"] == "failed"]
    assert unwritable.returncode == 1 and failed["where"] == "store"
    assert "cannot be made" in failed["words"] and "set KIT_STORE" in failed["words"]
