"""Metrics say what the stored events say, recounted here by other means; the alert knows its five minutes exactly."""

import asyncio
import json
import logging
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from langchain_core.tools import BaseTool, StructuredTool

from kit.core.bodies.call import AgentError, Envelope
from kit.core.bodies.speech import Status
from kit.core.card import AgentCard
from kit.core.context import OPERATOR, Principal, Session
from kit.core.outcome import AgentCall, Answer, Outcome
from kit.core.record import Measures, TurnRecord
from kit.core.trace import failures as went_wrong
from kit.core.trace import trace_of
from kit.metrics.alert import MISMATCH, alerts
from kit.metrics.latency import latencies
from kit.metrics.sample import Sample
from kit.metrics.summary import Label, measure_all, metrics
from kit.models.scripted import Line, ScriptedModel
from kit.patterns.supervisor import SUPERVISOR
from kit.runtime.context import RunContext
from kit.runtime.turn import Reply, run_turn
from kit.settings import HOME, Settings
from kit.stores.sqlite import SqliteStore, open_for_reading
from kit.stores.tally import tally_of
from kit.stores.turn_filter import TurnFilter
from kit.tools.tool import ToolResult, tool_context
from kit.wire import open_kit
from tests.cli.test_cli import refused, run
from tests.kits import (
    OFFLINE,
    SmallKit,
    answering,
    asks,
    bodies,
    failing,
    leading,
    small_kit,
    stitched,
)
from tests.sample_turn import a_turn
from tests.tools.test_tools import opened

AGENTS = ("shop", "rewards", "support", "play", "ereceipts")
TALK = Session(id="s", principal=Principal(tenant_id="t", user_id="u"))


def lookup(fate: Callable[[], str]) -> BaseTool:
    """A tool of the context service whose envelope says what fate has for it."""

    async def work() -> tuple[str, ToolResult]:
        context, what = tool_context(), fate()
        await asyncio.sleep(0.2)
        context.emit(
            Status(
                agent=context.agent, status="prose!" if what == "unknown" else "searching_offers"
            )
        )
        await asyncio.sleep(0.3)
        envelope = Envelope(
            agent=context.agent,
            domain_type="shop",
            enricher_id="offers",
            status="error" if what == "error" else "ok",
            principal_verified=what != "foreign",
            version_ok=what != "version",
        )
        context.emit(envelope)
        if what in ("error", "foreign", "version"):
            reason: Any = "principal_mismatch" if what == "foreign" else "unavailable"
            return "none", ToolResult(
                text="none", fault=reason, detail="secret-enricher shop/offers of u-9"
            )
        return "ok", ToolResult(text="ok")

    return StructuredTool.from_function(
        coroutine=work, name="work", description="W.", response_format="content_and_artifact"
    )


async def some_turns(count: int, seed: int) -> tuple[SmallKit, list[Reply]]:
    """Turns of many fates, in virtual time."""
    rng = random.Random(seed)

    def sub(name: str) -> ScriptedModel:
        def work(messages: list[Any]) -> Line:
            if messages[-1].type == "tool":
                return Line(
                    ""
                    if "none" in str(messages[-1].content) and rng.random() < 0.3
                    else f"{name} done.",
                    delay=0.4,
                )
            draw = rng.random()
            if draw < 0.15:
                return Line(error=RuntimeError("broken"), delay=0.1)
            return Line(calls=[("work", {})], delay=0.5 + rng.random())

        return ScriptedModel(work)

    def lead(messages: list[Any]) -> Line:
        if messages[-1].type == "tool":
            return stitched(messages)
        chosen = rng.sample(AGENTS, rng.randint(0, 5))
        return (
            Line("Let me look.", calls=asks(*chosen).calls, delay=0.3)
            if chosen
            else Line("Hello!", delay=0.3)
        )

    fates = lambda: rng.choice(["ok"] * 5 + ["error", "foreign", "version", "unknown"])  # noqa: E731
    cards = [
        AgentCard(id=name, description=f"About {name}.", model="offline", tools=("work",))
        for name in AGENTS
    ]
    kit = small_kit(
        ScriptedModel(lead),
        {name: sub(name) for name in AGENTS},
        {"work": lookup(fates)},
        cards,
        cap=3,
    )
    replies: list[Reply] = []
    for number in range(count):
        who = Principal(tenant_id="acme" if number % 2 else "globex", user_id=f"u{number}")
        replies.append(await run_turn("go", Session(id=f"s{number}", principal=who), kit))
    return kit, replies


BY_HAND = {
    "turns": 4,
    "intent_count 0": 1,
    "intent_count 1": 1,
    "intent_count 2": 1,
    "intent_count 3+": 1,
    "fan_out 0": 1,
    "fan_out 1": 1,
    "fan_out 2": 2,
    "cap_exceeded_total": 1,
    MISMATCH: 1,
    "ps6.envelope.version_mismatch_total": 1,
    "status_unknown_total": 1,
    "partial_failure_rate 2 fan-outs": 1 / 2,
    "fan_out_success_rate 4 sub-agents": 1 / 4,
    "failures_total axis 2: data": 3,
    "failures_total axis 3: partial": 1,
    "sub_agent_invocations shop": 3,
    "sub_agent_invocations rewards": 2,
    "sub_agent_seconds_p50 shop": 2.4,
    "sub_agent_seconds_p95 shop": 3.4,
    "turn_seconds_p50 mediated, every turn": 1.7,
    "turn_seconds_p50 mediated, sub-agents asked": 2.7,
    "turn_seconds_p95 mediated, every turn": 3.7,
    "first_text_seconds_p99 mediated, every turn": 0.3,
    "routing_seconds_p50 mediated, every turn": 0.3,
}
"""Of a lookup that fails beside one that does not, of two that fail and a call over the cap, of one alone with a
status that nobody knows, and of a greeting. The orchestrator decides in 0.3 s, and words nothing of its own."""


@pytest.mark.req("PC2-R-5", "PC1-S10.2", "PC2-S10.2", "PC1-NFR-1")
async def test_the_metrics_of_four_turns_of_known_fates_are_what_is_counted_by_hand():
    fates = iter(("ok", "error", "foreign", "version", "unknown"))
    thinking = {"shop": iter((0.5, 1.5, 2.5)), "rewards": iter((0.5, 1.5))}

    def sub(name: str) -> ScriptedModel:
        def work(messages: list[Any]) -> Line:
            if messages[-1].type != "tool":
                return Line(calls=[("work", {})], delay=next(thinking[name]))
            return Line("" if "none" in str(messages[-1].content) else "Done.", delay=0.4)

        return ScriptedModel(work)

    def route(request: str) -> Line:
        asked = asks(*[name for name in request.split() if name in names]).calls
        return Line("Let me look.", calls=asked, delay=0.3) if asked else Line("Hello!", delay=0.3)

    names = ("shop", "rewards", "play")
    cards = [AgentCard(id=n, description=n, model="offline", tools=("work",)) for n in names]
    models = {name: sub(name) for name in names}
    kit = small_kit(leading(route), models, {"work": lookup(lambda: next(fates))}, cards, cap=2)
    for number, request in enumerate(("shop rewards", "shop rewards play", "shop", "hello")):
        await run_turn(request, TALK.replace(id=f"s{number}"), kit)
    rows = metrics(kit.store).rows()
    values = {f"{row['metric']} {row['of']}".strip(): row["value"] for row in rows}
    assert {name: values.get(name) for name in BY_HAND} == pytest.approx(BY_HAND)


@pytest.mark.req("PC2-R-5")
async def test_first_status_and_longest_silence_are_exact_for_each_invocation():
    model = ScriptedModel(Line(calls=[("work", {})], delay=1.0), Line("Done.", delay=2.0))
    card = AgentCard(id="shop", description="Shops.", model="offline", tools=("work",))
    kit = small_kit(
        [asks("shop"), stitched], {"shop": model}, {"work": lookup(lambda: "ok")}, [card]
    )
    reply = await run_turn("go", TALK, kit)
    record = kit.store.turn(reply.turn_id, OPERATOR)
    assert record is not None
    [call] = record.measures.agents
    assert call.first_status == pytest.approx(1.2) and call.seconds == pytest.approx(3.5)
    assert call.longest_silence == pytest.approx(2.3) and call.statuses == 1
    assert metrics(kit.store).number("sub_agent_first_status_seconds_p95", "shop") is not None


async def test_dispatch_overhead_leaves_out_what_models_and_tools_take():
    @dataclass(frozen=True)
    class Dawdler:
        card: AgentCard
        time_budget: float | None = None

        async def run(self, call: AgentCall, ctx: RunContext) -> Outcome:
            await asyncio.sleep(0.7)  # neither a model nor a tool: machinery
            return Answer(call_id=call.call_id, agent="shop", text="ok")

    slow = small_kit([asks("shop"), stitched], {"shop": ScriptedModel(Line("x"))})
    slow.team = slow.team.with_agents({"shop": Dawdler(slow.team.deck.cards["shop"])})
    await run_turn("go", TALK, slow)
    measured = metrics(slow.store).number("dispatch_overhead_seconds_p95")
    assert measured == pytest.approx(0.7)


async def test_a_turn_that_looked_things_up_by_itself_is_none_in_which_nobody_was_asked():
    """As the monolith does, whose turns are as long as those of sub-agents."""
    async with open_kit(OFFLINE) as kit:
        looked_up = await kit.ask("How many points do I have?", kit.session("a"), "monolith")
        await kit.ask("hello", kit.session("b"), "monolith")
        tally = tally_of(kit.store.turns())
    assert looked_up.usage.tool_calls
    counts = [
        latencies(tally, "turn", path)["monolith"].count for path in ("every turn", "nobody asked")
    ]
    assert counts == [2, 1]
    assert "monolith" not in latencies(tally, "turn", "sub-agents asked")


def row(
    turn_id: str = "t", started_at: float = 0.0, tenant: str = "acme", **fields: Any
) -> TurnRecord:
    given: dict[str, Any] = {"tenant_id": tenant, "seconds": 1.0, **fields}
    return a_turn(turn_id, at=started_at).replace(**given)


async def test_a_wait_for_its_user_is_no_failure(tmp_path: Path):
    """Neither in the metrics, nor in the turn's row, nor in the query that counts why agents failed."""
    path = tmp_path / "kit.db"
    settings = Settings(store=str(path), deck=HOME / "cards" / "gifts", pace=0, model="offline")
    request = "Redeem 500 points for a gift card of Harvest Market, and how many points do I have"
    async with open_kit(settings, faults=True) as kit:
        waiting = kit.session("waits")
        waits = await kit.ask(request, waiting)
        fails = await kit.ask(
            "How many points do I have", kit.session("fails"), faults=["points=raise"]
        )
        found = metrics(kit.store)
        recorded = kit.store.turn(waits.turn_id, OPERATOR)
        failed = kit.store.search(waiting.principal, TurnFilter(axes=("invocation", "partial")))
    assert (waits.status, fails.status) == ("paused", "failed")
    assert not went_wrong(trace_of(waits.events)) and went_wrong(trace_of(fails.events))
    assert found.numbers("sub_agent_failures_total") == {"points": 1, "gift_cards": 0}
    assert found.number("failures_total", "axis 1: invocation") == 1
    assert found.share("partial_failure_rate").n == found.share("fan_out_success_rate").n == 0
    assert recorded is not None and recorded.failed == () and failed.total == 1
    text = (HOME / "docs" / "traces.md").read_text()
    query = text.split("Why agents failed")[1].split("```sql\n")[1].split("```")[0]
    with open_for_reading(path) as reader:
        assert reader.execute(query).fetchall() == [("points", "invocation", "exception", 1)]
    reader.close()


async def test_sub_agents_that_worked_one_after_another_are_no_fan_out():
    agents = {"shop": answering("Apples.", 0.5), "play": answering("", 0.5)}
    kit = small_kit([asks("shop"), asks("play"), stitched], agents)
    await run_turn("two things", TALK, kit, SUPERVISOR)
    counts = kit.store.tally().counts
    assert counts["fan_out", "2"] == 1 and counts["fan_outs",] == counts["fan_outs_partial",] == 0
    kit = small_kit([asks("shop", "play"), stitched], agents)
    await run_turn("two things", TALK, kit)
    counts = kit.store.tally().counts
    assert counts["fan_outs",] == counts["fan_outs_partial",] == 1


@pytest.mark.req("K-23")
async def test_what_is_stopped_has_neither_failed_nor_succeeded():
    """One that failed before the stop still counts as failed, and so does one whose library cancels itself."""
    agents = {
        "shop": answering("Apples.", 0.5),
        "rewards": failing(asyncio.CancelledError("pool"), 0.5),
        "support": answering("Late.", 60),
        "play": answering("Late.", 60),
    }
    kit = small_kit([asks(*agents), stitched], agents)
    turn = run_turn("four things", TALK, kit)
    await asyncio.sleep(5)
    turn.cancel()
    reply = await turn
    record = kit.store.turn(turn.id, OPERATOR)
    found = metrics(kit.store)
    parts = reply.parts
    assert (reply.status, parts.whole, parts.failed, parts.stopped) == ("cancelled", 1, 1, 2)
    assert record is not None and record.failed == ("rewards",)
    failures = found.numbers("sub_agent_failures_total")
    assert {agent for agent, count in failures.items() if count} == {"rewards"}
    assert found.number("failures_total", "axis 1: invocation") == 1
    assert found.share("fan_out_success_rate").n == 2, "of those that ran to their end"
    assert [span.agent for span in went_wrong(trace_of(reply.events)) if span.kind == "agent"] == [
        "rewards"
    ]


def test_a_tenant_without_a_turn_is_named_with_those_that_have_some(tmp_path: Path):
    out = str(tmp_path / "out.jsonl")
    environ = {"KIT_STORE": str(tmp_path / "kit.db"), "KIT_MODEL": "offline"}
    run("ask", "hello", **environ)
    for command in (
        ["data", "metrics"],
        ["data", "drift", out],
        ["data", "cases", out],
        ["data", "events"],
        ["monitor", "--once"],
    ):
        said = run(*command, "--tenant", "amce", **environ)
        refused(said, "no turn of tenant 'amce'", "did you mean 'acme'?")
    assert not (tmp_path / "out.jsonl").exists()


def test_metrics_of_nothing_are_there_and_empty():
    found = metrics(SqliteStore(":memory:"))
    assert (
        found.number("turns") == 0
        and not found.numbers("sub_agent_invocations")
        and found.share("partial_failure_rate").n == 0
    )
    values = {row["metric"]: row["value"] for row in found.rows()}
    assert {"intent_count", MISMATCH, "orchestrator_seconds_p95"} <= set(values)
    assert values["compaction_rate"] is values["partial_failure_rate"] is None, (
        "a share of nothing is no share of 0"
    )


def test_compaction_and_acknowledgement_are_rates_over_the_turns_they_concern():
    paths = ["composed", "composed", "rescued", None]
    turns = [row(measures=Measures(acknowledged=path, compactions=path is None)) for path in paths]
    found = measure_all(Sample(tally_of(turns)))
    assert (found.share("compaction_rate").right, found.share("compaction_rate").n) == (1, 4)
    shares = {"composed": 2 / 3, "recomposed": 0.0, "appended": 0.0, "rescued": 1 / 3}
    shares["unsaid"] = 0.0
    assert {
        path: rate.value for path, rate in found.shares("acknowledgement_rate").items()
    } == shares


@pytest.mark.req("PC1-S10.2", "PC2-S10.2")
def test_labels_give_accuracy_resolution_and_scores_for_each_vertical():
    turns = [row("1", invoked=("shop",)), row("2", invoked=("shop", "play")), row("3", invoked=())]
    labels = [
        Label(
            turn_id="1",
            agents=("shop",),
            scores={"shop": {"safety": 1.0, "quality": 0.5}},
            resolved=True,
        ),
        Label(turn_id="2", agents=("shop",), scores={"shop": {"quality": 1.0}}),
        Label(turn_id="3", agents=("rewards",), resolved=False),
    ]
    found = measure_all(Sample(tally_of(turns), list(zip(turns, labels, strict=True))))
    assert {v: (r.right, r.n) for v, r in found.shares("routing_accuracy").items()} == {
        "play": (0, 1),
        "rewards": (0, 1),
        "shop": (2, 2),
    }
    assert (
        found.share("reference_resolution_rate").right,
        found.share("reference_resolution_rate").n,
    ) == (1, 2)
    assert found.numbers("score") == {"shop: quality": 0.75, "shop: safety": 1.0}


@pytest.mark.req("PC1-S10.2")
async def test_prior_context_recall_counts_the_entities_that_crossed_for_its_own_tenant_alone():
    call = {"query": "q", "intent_count": 1, "prior_context": "Ember Hill coffee, receipt R-12"}
    kit = small_kit(
        [Line(calls=[("ask_shop", call)]), stitched], {"shop": ScriptedModel(Line("ok"))}
    )
    reply = await run_turn(
        "go", Session(id="s", principal=Principal(tenant_id="theirs", user_id="u")), kit
    )
    carried = ("ember hill", "R-12", "R-13")
    label = Label(turn_id=reply.turn_id, agents=("shop",), carried=carried)
    recall = metrics(kit.store, tenant="theirs", labels=[label]).share("prior_context_recall")
    assert (recall.right, recall.n) == (2, 3)
    found = metrics(kit.store, tenant="ours", labels=[label])
    assert found.share("prior_context_recall").n == 0 and not found.shares("routing_accuracy")


def mismatched(turn_id: str, started_at: float, *at: float) -> TurnRecord:
    return row(turn_id, started_at, measures=Measures(mismatches=at))


@pytest.mark.req("PC2-NFR-4")
def test_the_window_is_five_minutes_to_the_instant():
    first = mismatched("a", 1000.0, 0.0)
    assert [
        a.count for a in alerts(tally_of([first, mismatched("b", 1299.999, 0.0)]).mismatches)
    ] == [2]
    assert [
        a.count for a in alerts(tally_of([first, mismatched("b", 1300.0, 0.0)]).mismatches)
    ] == [1, 1]
    for now, count in ((1000.0, 1), (1299.999, 1), (1300.0, 0), (999.9, 0)):
        assert len(alerts(tally_of([first]).mismatches, now=now)) == count


@pytest.mark.req("PC2-FR-12", "PC2-AC-6", "PC2-S9.5-4", "PC2-S9.1-5", "PC2-NFR-4")
async def test_a_foreign_envelope_is_suppressed_counted_alerted_and_owned_up_to(
    caplog: pytest.LogCaptureFixture,
):
    def foreign(reply: Any) -> Any:
        payload = {**(reply.payload or {}), "topic": "planted"}
        return reply.model_copy(
            update={"principal": Principal(tenant_id="acme", user_id="u-999"), "payload": payload}
        )

    model = ScriptedModel(Line(calls=[("search_offers", {"query": "coffee"})]), Line(""))
    card = AgentCard(id="shop", description="Shops.", model="offline", tools=("search_offers",))
    async with opened(foreign) as make:
        tool = make("search_offers")
        kit = small_kit(
            [asks("shop"), Line("Nothing to say.")],
            {"shop": model},
            {"search_offers": tool},
            [card],
        )
        with caplog.at_level(logging.CRITICAL, "kit.alert"):
            reply = await run_turn(
                "go", Session(id="s", principal=Principal(tenant_id="acme", user_id="u-001")), kit
            )
        assert len((tool.metadata or {})["asked"]) == 1  # and it was not asked for again
    assert "planted" not in repr(model.seen) + repr(reply) and "u-999" not in repr(
        model.seen
    ) + repr(reply)
    assert metrics(kit.store).number(MISMATCH) == 1
    assert [alert.turn_ids for alert in alerts(kit.store.tally().mismatches)] == [(reply.turn_id,)]
    [said] = [record.getMessage() for record in caplog.records if record.name == "kit.alert"]
    assert MISMATCH in said and reply.turn_id in said and "u-" not in said
    assert "wasn't able to get an answer about shop" in reply.text


@pytest.mark.req("PC2-OQ-5")
async def test_every_failure_is_one_typed_error_and_a_lookup_lost_beside_an_answer_is_one_that_is_not_final():
    _, replies = await some_turns(30, seed=8)
    kinds: set[tuple[str, bool]] = set()
    for reply in replies:
        due = [(o.agent, o.axis, True) for o in reply.outcomes if o.kind == "failure"]
        due += [
            (o.agent, "data", False) for o in reply.outcomes if o.kind == "answer" and o.data_faults
        ]
        errors = bodies(reply, AgentError)
        assert sorted((e.agent, e.axis, e.is_final) for e in errors) == sorted(due)
        for error in errors:
            assert set(error.model_dump()) == {"kind", "agent", "axis", "is_final"}
            kinds.add((error.axis, error.is_final))
    assert kinds == {("invocation", True), ("data", True), ("data", False)}


def test_the_command_prints_every_metric_and_says_no_while_there_is_an_alert(
    tmp_path: Path,
):
    path = str(tmp_path / "kit.db")
    assert run("ask", "how many points do I have, and tea deals", KIT_STORE=path).returncode == 0
    clean = run("data", "metrics", "--json", KIT_STORE=path)
    rows = [json.loads(line) for line in clean.stdout.splitlines()]
    assert clean.returncode == 0 and {"metric": "fan_out", "of": "2", "value": 1} in rows
    store = SqliteStore(path)
    rate = metrics(store).share("partial_failure_rate")
    (line,) = [line for line in rows if line["metric"] == "partial_failure_rate"]
    assert (line["value"], line["low"], line["high"]) == (rate.value, rate.low, rate.high)
    [turn] = store.turns()
    label = Label(turn_id=turn.id, agents=("shop",))
    (tmp_path / "labels.jsonl").write_text(f"{label.model_dump_json()}\n")
    changed = turn.model_copy(update={"measures": Measures(mismatches=(0.5,))})
    store.begin_turn(changed)
    store.end_turn(changed, [], [])
    store.close()
    bad = run("data", "metrics", "--labels", str(tmp_path / "labels.jsonl"), KIT_STORE=path)
    assert bad.returncode == 1 and f"ALERT {MISMATCH}: 1 within 5 minutes" in bad.stdout
    assert f"{rate.value:.4g} [{rate.low:.4g}, {rate.high:.4g}]" in bad.stdout
    assert "shop (1 labelled)" in bad.stdout


@pytest.mark.req("PC2-NFR-1")
@pytest.mark.realtime
async def test_dispatching_takes_less_than_the_slowest_tool():
    async with open_kit(Settings(store=":memory:", pace=0.3, today="2026-11-01")) as kit:
        await kit.ask("hello", kit.session("warm"))
        asked = (
            kit.ask("how many points do I have, and find coffee deals", kit.session(f"s{n}"))
            for n in range(3)
        )
        replies = await asyncio.gather(*asked)
        overhead = kit.store.tally().samples["overhead",]
    tools = [span.seconds for reply in replies for span in reply.trace.spans if span.kind == "tool"]
    assert len(overhead) == 3 and 0.0 < max(overhead) < max(tools)


@pytest.mark.req("PC1-R-7")
async def test_the_share_of_compositions_that_repeat_a_sub_agent_byte_for_byte_is_kept():
    words = "Your receipt was taken in; the points come within two days."
    texts = {
        f"Good news. {words}": (1, 1),
        "It was taken in, and points come within two days.": (0, 1),
        "": (0, 0),  # nothing to quote
    }
    for text, counted in texts.items():
        lead = [asks("shop"), Line(text)] if text else [Line("Hello!")]
        kit = small_kit(lead, {"shop": ScriptedModel(Line(words))})
        await run_turn("go", TALK, kit)
        rate = metrics(kit.store).share("verbatim_composition_rate")
        assert (rate.right, rate.n) == counted, text
