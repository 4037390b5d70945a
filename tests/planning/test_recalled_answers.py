"""What plans leave is found again: by the planner of a similar task, by its meaning, and until its time is over."""

import json
from pathlib import Path
from typing import Any

import pytest

from kit import open_kit
from kit.core.context import Principal
from kit.tools.api_embedder import ApiEmbedder
from kit.tools.recall import find_memories
from kit.tools.task_memory import Task, TaskMemory
from tests.kits import OFFLINE
from tests.loopback_openai import Loopback, Raw, Refuse
from tests.plan_kits import Rows, keeps_briefs, opened_plans

OURS = "ou-0001"
ANN = Principal(tenant_id="acme", user_id="ann")
ROWS = {"rows": "array<string>"}
TASKS = (
    ("Rank the outlets of the brand by sales", ["Harbor St", "Mill Rd"]),
    ("Look up the weather of the week", ["rain", "sun"]),
    ("Collect the complaints about staff", ["too slow", "rude"]),
)


@pytest.mark.req("AS-12", "AS-30")
async def test_a_planner_reads_how_similar_tasks_of_the_same_user_were_answered(
    tmp_path: Path,
) -> None:
    briefs: list[dict[str, Any]] = []

    async with opened_plans(tmp_path, Rows(), planner=keeps_briefs(briefs), recall=2) as kit:
        first = await kit.ask("the outlets with the best sales", kit.session("s1", "acme", "ann"))
        await kit.ask("which outlets have the worst sales", kit.session("s2", "acme", "ann"))
        await kit.ask("the weather on Monday", kit.session("s3", "acme", "ann"))
        await kit.ask("the outlets with the best sales", kit.session("s4", "acme", "bob"))
        await kit.ask("the outlets with the best sales", kit.session("s5", "other", "ann"))
    answered = [{"task": "the outlets with the best sales", "answer": first.text}]
    assert [brief.get("earlier_tasks") for brief in briefs] == [None, answered, None, None, None]


@pytest.mark.req("AS-12")
async def test_what_steps_left_is_found_by_what_it_means(tmp_path: Path) -> None:
    async with open_kit(OFFLINE) as kit:
        documents = kit.store.open_documents()
        memory = TaskMemory(documents)
        for number, (words, rows) in enumerate(TASKS):
            task = Task(ANN, "s1", f"t{number}", "executor", words=words)
            await memory.write(task, "rows", {"rows": rows}, ROWS)
        asked = (documents.memory, kit.embedder, ANN, "session")
        for text, number in (("which shops sold most", 0), ("forecast of the temperature", 1)):
            found = await find_memories(*asked, text, 1, "s1")
            assert [one.task_id for one in found] == [f"t{number}"]
            assert found[0].embedder == kit.embedder.name
        assert await find_memories(*asked, "which shops sold most", 1, "s2") == []


def vector(first: float) -> Raw:
    numbers = [first, *[0.5] * 255]
    return Raw(json.dumps({"data": [{"embedding": numbers}]}))


@pytest.mark.realtime
@pytest.mark.req("AS-12")
async def test_a_model_behind_an_endpoint_makes_the_vectors_where_a_setting_names_it(
    server: Loopback,
) -> None:
    settings = OFFLINE.with_(
        embedder="small-3", openai_base_url=server.url, openai_api_key="sk-test"
    )
    async with open_kit(settings) as kit:
        assert isinstance(kit.embedder, ApiEmbedder) and kit.embedder.name == "small-3-256"
        server.plays(vector(0.25))
        assert (await kit.embedder.embed("tea"))[:2] == (0.25, 0.5)
        [request] = server.requests
        assert request == {"model": "small-3", "input": "tea", "dimensions": 256}
        assert server.paths[0].endswith("/embeddings") and server.bearers == ["sk-test"]


@pytest.mark.realtime
@pytest.mark.parametrize(
    "fault", [Refuse(500, "broken"), Raw(json.dumps({"data": [{"embedding": [1.0]}]}))]
)
async def test_without_a_vector_memories_are_written_and_found_by_their_words(
    server: Loopback,
    fault: Any,
) -> None:
    settings = OFFLINE.with_(embedder="small-3", openai_base_url=server.url)
    async with open_kit(settings) as kit:
        documents = kit.store.open_documents()
        server.plays(fault, fault)
        task = Task(ANN, "s1", "t1", "executor", words="Weigh the tea")
        await TaskMemory(documents, embedder=kit.embedder).write(task, "rows", [], "array<string>")
        found = await find_memories(
            documents.memory, kit.embedder, ANN, "session", "tea", session_id="s1"
        )
        assert [(one.task_id, one.embedding) for one in found] == [("t1", None)]
