"""A grid in Python: model objects, a pattern, cases and judges of one's own, kept, resumed and
shown like one of a file."""

import linecache
import os
import signal
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, cast

import pytest
from langchain_openai import ChatOpenAI
from streamlit.testing.v1 import AppTest

from kit import ExperimentKits, Line, OfflineModel, ScriptedModel, Settings, compare
from kit.bench.case import Case
from kit.bench.grid.failures import STREAK
from kit.bench.grid.results import Results
from kit.bench.grid.run import TRACES
from kit.bench.identity import code_identity, model_identity
from kit.bench.own_parts import own_judges
from kit.bench.scoring.judge import Rubric, Verdict
from kit.bench.scoring.observation import Observation
from kit.bench.scoring.run_case import turn_of
from kit.bench.scoring.scorers import ROUTING
from kit.compose.deck import Deck
from kit.core.context import OPERATOR
from kit.core.errors import BindError, DataError
from kit.core.model import ModelSpec
from kit.core.outcome import AgentCall, Answer, Outcome, Usage
from kit.core.simulation import Law, LogNormal
from kit.patterns.agents_as_tools import run_mediated
from kit.runtime.context import RunContext
from kit.runtime.pattern import Bind, Pattern
from kit.runtime.team import Team
from kit.stores.sqlite import SqliteStore
from kit.ui.shared import frame
from tests.loopback_openai import Loopback, Say, loopback
from tests.pages import unescaped

pytestmark = pytest.mark.realtime
CASES = (
    {"id": "points", "user": "how many points do I have", "expected_sub_agents": ["rewards"]},
    {"user": "find coffee deals", "expected_sub_agents": ["shop"]},
    {
        "user": "how many points do I have, and find coffee deals",
        "expected_sub_agents": ["rewards", "shop"],
    },
)
EXACT = ModelSpec(key="simulated-exact", provider="simulated", law=Law())
DROPPING = ModelSpec(
    key="simulated-dropping", provider="simulated", law=Law(drop=1.0, under_report=1.0)
)


@pytest.fixture
def kits(tmp_path: Path) -> ExperimentKits:
    return ExperimentKits.of(Settings(store=str(tmp_path / "kit.db")), virtual=True)


async def mine(call: AgentCall, ctx: RunContext) -> Outcome:
    """A pattern of one's own: a function over the same agents."""
    return await run_mediated(call, ctx)


def short(_: Case, observation: Observation) -> float | None:
    """A judge of one's own."""
    return float(len(observation.text) < LONGEST)


LONGEST = 1_000


def test_models_patterns_cases_and_judges_of_ones_own_are_compared_and_kept(
    kits: ExperimentKits,
):
    cases = [
        Case.model_validate(
            {"kind": "mixed", "domain": "", **CASES[2], "turns": [CASES[2]], "id": "both"}
        ),
        *CASES[:2],
    ]
    result = compare(
        [EXACT, DROPPING],
        cases,
        patterns=["mediated", mine],
        judges=[short],
        baseline={"model": EXACT.key},
        kits=kits,
    )
    assert result.run.complete and result.run.done == 2 * 2 * 3
    frame = result.frame
    assert set(frame[frame.case == "both"].exact) == {0.0, 1.0} and set(frame.short) == {1.0}
    verdicts = {(v.way["pattern"], v.scorer): v for v in result.verdicts}
    assert set(verdicts) == {(p, s) for p in ("mediated", "mine") for s in ("exact", "short")}
    one = verdicts["mine", "exact"]
    assert (one.difference.n, one.before.value) == (3, 1.0)
    assert one.after.value == pytest.approx(2 / 3)
    text = str(result)
    assert str(one) in text and str(one).replace(">", "&gt;") in result._repr_html_()
    assert "simulated" in text and (result.run.folder / "report.md").read_text() == text
    assert result.run.folder.parent == kits.settings.grids


def test_what_was_played_is_not_played_again_and_what_changed_is(
    kits: ExperimentKits, monkeypatch: pytest.MonkeyPatch
):
    def play(*cases: Mapping[str, Any], models: Any = (EXACT,), **fields: Any) -> int:
        return compare(
            models, cases or CASES, patterns=["mediated", mine], name="kept", kits=kits, **fields
        ).run.done

    assert play() == 6 and play() == 0
    assert play({**CASES[0], "user": "how many points have I got"}, *CASES[1:]) == 2, (
        "the changed case alone"
    )
    assert play(judges=[short]) == 6 and play(judges=[short]) == 0, "other scores are other results"
    monkeypatch.setitem(globals(), "LONGEST", 2)
    assert play(judges=[short]) == 6, "a judge is what it reads as well"
    assert play(models={"one": OfflineModel(think=0.0)}) == 6
    assert play(models={"one": OfflineModel(think=0.5)}) == 6, "another parameter is another model"

    async def other(call: AgentCall, ctx: RunContext) -> Outcome:
        ctx.turn.log  # noqa: B018  another source under the same name
        return await run_mediated(call, ctx)

    run = compare(
        [EXACT], CASES, patterns=["mediated", Pattern("mine", other)], name="kept", kits=kits
    ).run
    assert (run.before, run.done) == (3, 3), "the pattern whose code changed, and no other"


def test_a_model_object_is_known_again_by_class_and_parameters_and_never_by_its_key():
    def openai(**fields: Any) -> dict[str, Any]:
        values: dict[str, Any] = {
            "model": "m",
            "api_key": "sk-one-of-many",
            "base_url": "http://a/v1",
            **fields,
        }
        return model_identity("m", ChatOpenAI(**values), named=False)

    assert openai() == openai(api_key="sk-another-one") and "sk-one" not in str(openai())
    changed = ({"base_url": "http://b/v1"}, {"temperature": 0.5}, {"default_headers": {"a": "b"}})
    assert all(openai(**fields) != openai() for fields in changed)


def test_code_is_known_by_what_it_uses_too():
    def scaled(factor: float) -> Any:
        def judge(case: Case, observation: Observation) -> float:
            return factor * len(helper(observation))

        return judge

    assert code_identity(scaled(0.5)) == code_identity(scaled(0.5)) != code_identity(scaled(0.25))
    assert "of the helper" in str(code_identity(scaled(0.5))), "the source of a function beside it"


def test_code_of_eval_is_not_known_by_the_text_of_the_command_line(
    monkeypatch: pytest.MonkeyPatch,
):
    """Python 3.13 keeps the text of `python -c` as the source of "<string>", the file that every
    eval() says its code is of."""
    line = "judge = lambda case, observation: 0.5\n"
    monkeypatch.setitem(linecache.cache, "<string>", (len(line), None, [line], "<string>"))
    with pytest.raises(DataError, match="the code of '<lambda>' cannot be read"):
        code_identity(eval("lambda case, observation: 1.0"))


@dataclass(frozen=True)
class Strict:
    """A judge of one's own with a state."""

    rubric: Rubric
    least: object

    async def judge(self, case: Case, observation: Observation) -> Verdict | None:
        return Verdict(score=float(len(observation.text) >= cast("int", self.least)))


def test_a_judge_is_known_by_what_it_holds_too():
    rubric = Rubric(id="long", text="Is it long?")

    def identity(least: object) -> Mapping[str, str]:
        return own_judges([Strict(rubric, least)])[1]

    assert identity(10) == identity(10) != identity(80)
    with pytest.raises(DataError, match=r"judge 'long' holds a value of type .* in 'least'"):
        identity(object())
    assert own_judges({"mine": Strict(rubric, object())})[1], (
        "its caller keeps names and changes apart"
    )


def helper(observation: Observation) -> str:
    return observation.text + "of the helper"


LAMBDA = ScriptedModel(lambda _: Line("hi"))
BAD: list[tuple[dict[str, Any], str]] = [
    (
        {"models": [LAMBDA]},
        "holds a value of type builtins.function in 'script', .* give it a name, models=",
    ),
    (
        {"models": [OfflineModel(), OfflineModel(think=1.0)]},
        "two are called 'offline'; give them names",
    ),
    (
        {"models": {"cheap": "offline"}},
        "'cheap' stands for the key 'offline'; put the key itself in its place",
    ),
    (
        {"models": ["offlin"]},
        r"compare\(\), models.0: unknown model 'offlin': did you mean 'offline'",
    ),
    ({"patterns": [Pattern("swarm", mine)]}, "'swarm' is the name of another pattern"),
    ({"patterns": [len]}, "builtins.len is neither a name, a Pattern nor an async function"),
    ({"judges": {"exact": short}}, "'exact' is the name of another scorer"),
    ({"cases": [{"user": "hi"}]}, r'cases\[0\]: case .* cannot be used: .*"expected_sub_agents"'),
    ({"cases": [CASES[0], CASES[0]]}, r"cases\[1\]: id 'points' is that of cases\[0\] already"),
]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    BAD,
    ids=[f"{next(iter(wrong))}{place}" for place, (wrong, _) in enumerate(BAD)],
)
def test_what_cannot_be_compared_is_one_sentence_with_the_fix(
    arguments: dict[str, Any], sentence: str, kits: ExperimentKits
):
    with pytest.raises(DataError, match=sentence):
        values: dict[str, Any] = {"models": ["offline"], "cases": CASES, "kits": kits, **arguments}
        compare(**values)


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Ctrl-C interrupts, as in a terminal; whatever a script starts in its background ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.req("K-5")
@pytest.mark.usefixtures("interruptible")
def test_a_grid_that_is_interrupted_goes_on_where_it_was(kits: ExperimentKits):
    begun = count(1)

    async def stopping(call: AgentCall, ctx: RunContext) -> Outcome:
        if next(begun) == 2:
            os.kill(
                os.getpid(), signal.SIGINT
            )  # to the whole process, as a terminal or a notebook sends it
            time.sleep(0.2)
        return await run_mediated(call, ctx)

    ways = [Pattern("stopping", stopping)]
    with pytest.raises(KeyboardInterrupt):
        compare([EXACT], CASES, patterns=ways, kits=kits, name="stopped")
    result = compare([EXACT], CASES, patterns=ways, kits=kits, name="stopped")
    assert result.run.before == 2 and result.run.complete and next(begun) == 4, "no turn twice"


async def test_a_grid_is_played_where_a_loop_runs_as_in_a_notebook(kits: ExperimentKits):
    assert compare([EXACT], CASES, kits=kits).run.complete


@pytest.mark.req("K-5")
def test_a_pattern_of_ones_own_is_bound_before_any_model_is_called_and_obeys_cap_and_guards(
    kits: ExperimentKits,
):
    seen = ScriptedModel(lambda _: Line("hi"), name="counted")

    def unbindable(deck: Deck, bind: Bind) -> Team:
        raise BindError("this team lacks its agents")

    broken = Pattern("without_agents", mine, unbindable)
    with pytest.raises(BindError, match="lacks its agents"):
        compare([seen], CASES, patterns=["mediated", broken], limits={"concurrency": 1}, kits=kits)
    assert seen.seen == []
    caps = {"one": {"cap": 1}, "two": {"cap": 2}}
    frame = compare([EXACT], CASES[2:], patterns=["mediated", mine], settings=caps, kits=kits).frame
    calls = {name: list(frame[frame.setting == name].model_calls) for name in caps}
    assert calls["one"][0] == calls["one"][1] < calls["two"][0] == calls["two"][1], (
        "what is over the cap never runs"
    )
    lossy = EXACT.model_copy(update={"law": Law(drop=1.0, retry_drop=0.0)})
    guards = {name: {"guards": {"failsafe": name == "on"}} for name in ("on", "off")}
    frame = compare([lossy], CASES[2:], patterns=[mine], settings=guards, kits=kits).frame
    assert dict(zip(frame.setting, frame.exact, strict=True)) == {"on": 1.0, "off": 0.0}, (
        "a dropped call is asked for again"
    )


class Severe:
    """A judge that takes its time, as a model does."""

    rubric = Rubric(id="severe", text="Be severe.")

    async def judge(self, case: Case, observation: Observation) -> Verdict | None:
        return Verdict(score=0.25) if observation.called else None


def test_tools_are_called_for_real_and_a_judge_may_be_asked(kits: ExperimentKits, tmp_path: Path):
    calls: list[str] = []

    def weigh_parcel(query: str) -> str:
        """Weighs a parcel."""
        calls.append(query)
        return "It weighs 3 kg."

    deck = tmp_path / "deck"
    deck.mkdir()
    (deck / "deck.yaml").write_text("orchestrator: lead\nrequired_blocks: []\n")
    (deck / "lead.yaml").write_text(
        "id: lead\nrole: orchestrator\ndescription: Routes.\nmodel: offline\nsub_agents: [parcels]\n"
    )
    (deck / "parcels.yaml").write_text(
        "id: parcels\ndescription: Weighs a parcel.\nmodel: offline\ntools: [weigh_parcel]\n"
    )
    case = {"user": "weigh my parcel", "expected_sub_agents": ["parcels"]}
    result = compare([EXACT], [case], deck=deck, tools=[weigh_parcel], judges=[Severe()], kits=kits)
    assert len(calls) == 1 and list(result.frame.severe) == [0.25]


def zeta(server: Loopback) -> ModelSpec:
    """A model at this endpoint, with a key of its own."""
    return ModelSpec(key="zeta", provider="openai", base_url=server.url, api_key_env="ZETA_API_KEY")


def in_real_time(kits: ExperimentKits) -> ExperimentKits:
    """The same kits with that key, on the clock on the wall."""
    settings = kits.settings.with_(variables={"ZETA_API_KEY": "sk-of-nobody-at-all"})
    return ExperimentKits.of(settings, virtual=False)


def shown(run: str, kits: ExperimentKits, monkeypatch: pytest.MonkeyPatch) -> str:
    """What the page Benchmarks says of a run."""
    monkeypatch.setenv("KIT_STORE", kits.settings.store)
    monkeypatch.setenv("KIT_MODEL", "offline")
    page = AppTest.from_string(
        "from kit.ui.shared import address; from kit.ui.benchmarks import page; address.keep(); page.page()",
        default_timeout=300,
    )
    page.query_params["run"] = run
    page.run()
    frame.open_host.clear()
    assert not page.exception
    return " ".join(
        [
            *(one.value for one in (*page.markdown, *page.error)),
            *(part.proto.body for part in page.get("html")),
        ]
    )


@pytest.mark.req("SAT-24")
def test_a_way_that_failed_as_a_whole_is_named_on_the_page_without_a_verdict(
    kits: ExperimentKits, monkeypatch: pytest.MonkeyPatch
):
    with loopback() as server:
        server.key = "another"
        quick = EXACT.model_copy(
            update={"law": Law(latency=LogNormal(median=0.001))}
        )  # in real time
        result = compare([quick, zeta(server)], CASES, name="dead", kits=in_real_time(kits))
    text = shown("dead", kits, monkeypatch)
    assert (
        result.run.failed == 3
        and result.verdicts == []
        and "zeta: no verdict, 3 of 3 cells failed" in str(result)
    )
    assert (
        "zeta: no verdict, 3 of 3 cells failed." in unescaped(text)
        and "3 of 6 cells failed (auth 3)" in text
    )
    assert "Nothing was compared" not in text


# judges that fail


def misspelt(_: Case, observation: Observation) -> float | None:
    seen: Any = observation
    return float(len(seen.txt))


def of_words(_: Case, observation: Observation) -> float | None:
    return float(len(observation.text.split()))


@pytest.mark.req("K-5")
@pytest.mark.parametrize(
    ("judge", "words"),
    [
        (misspelt, r"'Observation' object has no attribute 'txt' \(test_python_grid.py:\d+, in"),
        (of_words, r"gave \d+.0; a score is a number from 0 to 1, or None"),
    ],
)
def test_a_judge_of_ones_own_is_tried_on_canned_turns_before_any_model_is_called(
    kits: ExperimentKits, judge: Any, words: str
):
    seen = ScriptedModel(lambda _: Line("hi"), name="counted")
    with pytest.raises(
        DataError, match=rf"judge '{judge.__name__}': .*{words}.*no model was called"
    ):
        compare([seen], CASES, judges=[judge], limits={"concurrency": 1}, kits=kits)
    assert seen.seen == []


def brittle(_: Case, observation: Observation) -> float | None:
    return 1.0 / (0 if observation.text == "Hello." else 1)


def mended(_: Case, observation: Observation) -> float | None:
    return float(observation.text == "Hello.")


@pytest.mark.req("K-5")
def test_turns_whose_judge_failed_are_paid_for_once_and_scored_when_it_is_mended(
    kits: ExperimentKits,
):
    hello = [{"id": f"c{n}", "user": "hello", "expected_sub_agents": []} for n in range(9)]
    usual: dict[str, Any] = {
        "settings": {"plain": {"guards": {"fastpath": False}}},
        "limits": {"concurrency": 1},
        "name": "judged",
        "kits": in_real_time(kits),
    }
    with loopback() as server:
        server.answer = lambda _: Say(["Hello."])
        broken = compare([zeta(server)], hello, judges={"greets": brittle}, **usual)
        paid = len(server.requests)
        result = compare([zeta(server)], hello, judges={"greets": mended}, **usual)
        greets = list(result.frame.greets)
        asked = len(server.requests)
    assert paid == broken.run.failed == STREAK, "the run ends when a judge fails again and again"
    assert "judge 'greets' failed 5 times for the same reason (judge)" in broken.text
    assert asked == len(hello) and result.run.complete
    assert result.run.scored_again == STREAK and greets == [1.0] * len(hello)
    row = next(iter(Results(result.run.folder)))
    store = SqliteStore(result.run.folder / TRACES)
    assert store.turn(turn_of(row), OPERATOR) is not None, (
        "the trace of a turn is found under its new judge"
    )
    store.close()


# a system of one's own


async def graph(call: AgentCall, ctx: RunContext) -> Outcome:
    """Somebody's own system as a pattern: it calls whom it likes, where the kit does not see it."""
    spent = Usage(model_calls=2, input_tokens=100, output_tokens=10, cost=0.01)
    return Answer(call_id=call.call_id, agent=call.agent, text="Hello.", usage=spent)


@pytest.mark.req("K-5")
def test_a_system_that_says_nothing_of_whom_it_called_has_no_routing_score_and_its_cost_counts(
    kits: ExperimentKits,
):
    asked = [{"user": f"coffee deals {n}", "expected_sub_agents": ["shop"]} for n in range(12)]
    result = compare([EXACT], asked, patterns=["mediated", graph], judges=[short], kits=kits)
    own = [row for row in Results(result.run.folder) if row["pattern"] == "graph"]
    for row in own:
        routing = {name: row["scores"][name] for name in ROUTING}
        assert routing == dict.fromkeys(ROUTING), "no routing is no routing score"
        assert row["scores"]["short"] == 1.0 and not row["routed"]
    verdicts = {one.scorer: one.verdict for one in result.verdicts}
    assert verdicts.get("exact", "no verdict") not in ("worse", "better")
    assert result.run.dollars == pytest.approx(0.01 * len(asked)), "so limits.dollars holds for it"
