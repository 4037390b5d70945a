"""The metrics page, run by Streamlit's own test driver over a store with real turns."""

import asyncio
import json
import re
import time
from collections.abc import Iterator
from contextlib import closing
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from kit.bench.latency_baseline import latency_baselines
from kit.bench.metrics_report import print_metrics
from kit.core.context import Principal, Session
from kit.core.display.turn_parts import TurnStatus
from kit.core.record import Measures
from kit.metrics import catalogue
from kit.metrics.alert import MISMATCH
from kit.metrics.catalogue import METRICS, Metric
from kit.metrics.summary import metrics
from kit.planning.plan import new_plan
from kit.service.monitor import Monitor
from kit.settings import Settings
from kit.stores.sqlite import SqliteStore
from kit.ui.shared.wording import moment
from kit.wire import open_kit
from tests.app.rooms import app_over, room, shown
from tests.kits import MIXED
from tests.sample_turn import a_turn

HOW_TO = Path(__file__).parents[2] / "docs" / "how-to" / "metric.md"
SECTIONS = {
    "routing accuracy by vertical": ["routing_accuracy"],
    "intent count in a turn": ["intent_count"],
    "turns over the cap": ["cap_exceeded_total"],
    "latency of each sub-agent": [
        "sub_agent_seconds_p50",
        "sub_agent_seconds_p95",
        "sub_agent_seconds_p99",
    ],
    "dispatch overhead p95": ["dispatch_overhead_seconds_p95"],
    "principal mismatches": [MISMATCH],
    "statuses an invocation": ["sub_agent_status_per_invocation"],
    "partial failures in a fan-out": ["partial_failure_rate", "fan_out_success_rate"],
    "failures by axis": ["failures_total"],
    "orchestrator p95": ["orchestrator_seconds_p95"],
    "sub-agents in a turn": ["fan_out"],
    "prior_context recall": ["prior_context_recall"],
    "scores by vertical": ["score"],
    "compaction": ["compaction_rate"],
    "references to another vertical": ["reference_resolution_rate"],
}
"""What the two sections 10.2 list -> the metrics that are it."""


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with four turns of one tenant's two people, and one of another tenant."""
    path = tmp_path_factory.mktemp("metrics") / "kit.db"

    async def turns() -> None:
        async with open_kit(Settings(store=str(path), pace=0, model="offline"), faults=True) as kit:
            await kit.ask(MIXED, kit.session("mine"), faults=["rewards=raise"])
            await kit.ask(MIXED, kit.session("mine"), cap=2)
            await kit.ask("How many points do I have?", kit.session("hers", user="u-002"))
            await kit.ask("hello", kit.session("mine"))

    asyncio.run(turns())
    put(path, "far", "umbrella", time.time())
    return path


@pytest.fixture
def page(asked: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[AppTest]:
    with app_over(asked, monkeypatch):
        yield unfolded()


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[AppTest]:
    with app_over(tmp_path / "kit.db", monkeypatch):
        yield unfolded()


def unfolded() -> AppTest:
    """The page with every figure open."""
    page = room("metrics")
    page.session_state["m-all"] = True
    return page


def put(
    path: Path,
    turn_id: str,
    tenant: str,
    at: float,
    *mismatches: float,
    status: TurnStatus = "ok",
) -> None:
    """Stores an ended turn with these replies for another principal, in seconds from its start."""
    who = Principal(tenant_id=tenant, user_id="u-001")
    session = f"of-{tenant}"
    turn = a_turn(turn_id, session, "u-001", at).replace(tenant_id=tenant)
    ended = turn.replace(status=status, seconds=1.0, measures=Measures(mismatches=mismatches))
    with closing(SqliteStore(path)) as store:
        store.open_session(Session(id=session, principal=who))
        store.begin_turn(turn)
        store.end_turn(ended, [], [])


def values(said: str) -> dict[str, str]:
    """Metric -> what the page says it is, without markup."""
    found = re.findall(r'data-metric="([^"]*)"><dt>[^<]*</dt><dd class="value">(.*?)</dd>', said)
    return {unescape(metric): re.sub("<[^>]*>", " ", value).strip() for metric, value in found}


@pytest.mark.req("PC2-S10.2")
def test_every_metric_of_both_sections_stands_on_the_page_with_its_value_and_definition(
    page: AppTest, asked: Path
):
    said = shown(page.run())
    store = SqliteStore(asked)
    found = metrics(store, tenant="acme")
    store.close()
    on_page = {unescape(name) for name in re.findall(r'data-metric="([^"]*)"', said)}
    assert not {metric for listed in SECTIONS.values() for metric in listed} - on_page
    assert not {row["metric"] for row in found.rows()} - on_page
    told = values(said)
    assert told["routing_accuracy"].startswith("needs labels: ")
    assert told["routing_accuracy"].endswith("data metrics --labels FILE")
    for metric in METRICS:
        assert metric.means in unescape(said), metric.name
    assert told["fan_out_success_rate"] == "80% (38 to 96)  of 5 sub-agents"
    assert "in brackets: between which shares the true one lies" in said
    assert (
        told["turns"] == "4"
        and told["cap_exceeded_total"] == "1"
        and "1: invocation  1" in told["failures_total"]
    )


def test_the_page_opens_on_a_sentence_and_twelve_figures_and_folds_the_rest(page: AppTest):
    page.session_state["m-all"] = False
    said = shown(page.run())
    assert (
        "### 4 turns: 2 answered whole, 2 in part. Every answer that lacked a part that was counted says so."
        in said
    )
    figures = {metric.label: metric.value for metric in page.metric}
    assert len(figures) == 12 and figures["Answered whole"] == "50% (15 to 85)"
    assert figures["Lost in silence"] == "0" and figures["Over the limit"] == "1"
    assert "data-metric" not in said and not page.warning


@pytest.mark.req("PC1-NFR-1", "PC1-S11.2")
def test_published_latencies_stand_beside_ours(page: AppTest):
    rows = re.findall(
        r'<tr><th scope="row">(.*?)</th><td>(.*?)</td><td>(.*?)</td><td>(.*?)</td></tr>',
        shown(page.run()),
    )
    told = {unescape(says): (sample, ours) for says, _, sample, ours in rows}
    for baseline in latency_baselines():
        sample, ours = told[baseline.says]
        assert sample == baseline.sample
        assert re.fullmatch(
            r"mediated [\d.]+ m?s of "
            + {"every turn": "4", "nobody asked": "1"}.get(baseline.path, "3"),
            ours,
        )


def test_a_metric_added_in_one_place_is_on_the_page_in_the_command_and_in_the_table(
    page: AppTest, asked: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    example = re.search(r"```python\n(.*?)```", HOW_TO.read_text(encoding="utf-8"), re.S)
    assert example is not None
    names: dict[str, Any] = {**vars(catalogue)}
    exec(example[1], names)
    added: Metric = names["TURNS_WITH_A_FAN_OUT"]
    monkeypatch.setattr(catalogue, "METRICS", (*METRICS, added))
    said = shown(page.run())
    assert added.label in said and added.means in said
    store = SqliteStore(asked)
    (row,) = (row for row in metrics(store, tenant="acme").rows() if row["metric"] == added.name)
    counts = store.tally("acme").counts
    assert row["value"] == counts["fan_outs",] / counts["turns",] > 0
    print_metrics(store, None, "acme", as_json=True)
    store.close()
    assert row in [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_the_window_chooses_turns_and_they_are_drawn_over_time(bare: AppTest, tmp_path: Path):
    for empty in (bare, room("traces")):
        assert "ask something in the chat" in shown(empty.run())
    bare.session_state["m-window"] = "Last hour"
    assert "Choose a longer one" in shown(bare.run())
    bare.session_state["m-window"] = "All time"
    for turn_id, ago in (("now", 60.0), ("before", 7_200.0), ("old", 864_000.0)):
        put(tmp_path / "kit.db", turn_id, "acme", time.time() - ago)
    endings, times = [chart.proto.alt for chart in bare.run().get("vega_lite_chart")]
    counted: list[str] = []
    for window in ("All time", "Last week", "Last day", "Last hour"):
        bare.session_state["m-window"] = window
        counted.append(values(shown(bare.run()))["turns"])
    assert counted == ["3", "2", "2", "1"]
    put(tmp_path / "kit.db", "waits", "acme", time.time() - 30, status="paused")
    said = shown(bare.run())
    assert "### 2 turns: 1 answered whole, 0 in part, 1 waiting for a yes or no." in said
    assert bare.metric[0].value == "100% (21 to 100)", "whoever waits is not unanswered"
    assert endings.startswith("Turns over time, by how they ended. answered: 0 to 2")
    assert times == "Seconds of a whole turn over time. p50: 1.00 to 1.00, p95: 1.00 to 1.00"


@pytest.mark.parametrize(("ago", "words"), [(60.0, "Alert now"), (900.0, "No alert fires")])
def test_the_alert_stands_on_top_and_names_no_other_tenants(
    bare: AppTest, tmp_path: Path, ago: float, words: str
):
    path = tmp_path / "kit.db"
    put(path, "theirs", "umbrella", time.time() - 30, 0.1)
    put(path, "fine", "acme", time.time() - 30)
    assert "No reply for another principal" in shown(bare.run())
    put(path, "mine", "acme", time.time() - ago, 0.1, 0.2)
    said = shown(bare.run())
    assert (
        words in said
        and "2 replies for another principal" in said
        and values(said)[MISMATCH] == "2"
    )


@pytest.mark.req("AS-16", "AS-18")
def test_how_plans_do_stands_on_the_page_with_the_alert_that_fires_and_since_when(
    bare: AppTest, tmp_path: Path
):
    now = time.time()
    put(tmp_path / "kit.db", "fine", "acme", now - 30)
    store = SqliteStore(tmp_path / "kit.db")
    documents = store.open_documents()

    async def fill(good: int, bad: int, tenant_id: str) -> None:
        who = Principal(tenant_id=tenant_id, user_id="u-001")
        for number in range(good + bad):
            plan = new_plan(f"{good}.{number}", who, f"s{number}", "Do it.", now - 90)
            plan = plan.replace(status="complete", completed_at=now - 60, task_type="ranking")
            await documents.plans.create(plan.replace(replan_count=int(number < bad)))

    assert "### Plans" not in shown(bare.run()), "a tenant without plans has no figures of them"
    asyncio.run(fill(0, 4, "acme"))
    assert "No alert fires; 4 plans are too few to tell, it takes 20." in shown(bare.run())
    asyncio.run(fill(16, 0, "acme"))
    asyncio.run(fill(2, 38, "umbrella"))
    said = unescape(shown(bare.run()))
    assert (
        "No alert fires. " in said and "80% (58 to 92) of 20</td>" in said and "### Plans" in said
    )
    asyncio.run(fill(15, 5, "acme"))
    said = unescape(shown(bare.run()))
    assert "No alert fires" not in said and "Alert now." in said
    assert "78% of 40 plans were done without being planned anew" in said
    assert "Replans of a plan, mean: ranking" in said and "0.23" in said
    asyncio.run(Monitor(documents, clock=lambda: now).look())
    assert f"Alert since {moment(now)}" in unescape(shown(bare.run()))
    store.close()
