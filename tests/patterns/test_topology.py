"""Race, ensemble, pipeline: policies of one ask_ call; who wins, who is stopped, who pays, what the user is told."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from kit.compose.deck import Deck
from kit.compose.parts import DeckSettings
from kit.compose.topology import Rubric, Topology
from kit.core.bodies.call import AgentEnded, AnswerChosen
from kit.core.card import AgentCard
from kit.core.errors import DeckError
from kit.core.outcome import Answer, Failure
from kit.models.scripted import ScriptedModel
from kit.patterns.topology import UNCHECKED, UNJUDGED, UNSURE, with_topologies
from kit.runtime.team import bind
from kit.runtime.turn import Reply, run_turn
from kit.stores.sqlite import SqliteStore
from tests.kits import (
    ALICE,
    TERSE,
    SmallKit,
    answering,
    asks,
    bodies,
    failing,
    nothing_runs,
    stitched,
)

RATED = {
    "type": "object",
    "properties": {"text": {"type": "string"}, "confidence": {"type": "number"}},
    "required": ["text", "confidence"],
}
VERDICT = {
    "type": "object",
    "properties": {"best": {"type": "integer"}, "merged": {"type": "string"}},
    "required": ["best"],
}
RUBRIC = Rubric(id="quality", criteria=("It answers what was asked.", "It is short."))


def card(name: str, rated: bool = False, **fields: Any) -> AgentCard:
    shape = {"handoff": {"output_schema": RATED}} if rated else {}
    given = {"id": name, "description": f"Explains {name}.", "model": "offline", **shape, **fields}
    return AgentCard.model_validate(given)


def rated(text: str, confidence: float, delay: float = 0.0) -> ScriptedModel:
    return answering(json.dumps({"text": text, "confidence": confidence}), delay)


def joint(
    topology: Topology,
    models: Mapping[str, Any],
    cards: Mapping[str, AgentCard],
    **settings: Any,
) -> SmallKit:
    """A kit whose orchestrator asks `explainer`, carried out as `topology` says."""
    lead = AgentCard(
        id="orchestrator", description="R.", model="offline", sub_agents=("explainer", "shop")
    )
    names = dict.fromkeys((*models, "explainer", "shop"))
    plain = [cards.get(name, card(name)) for name in names if name != "orchestrator"]
    told = DeckSettings(
        orchestrator="orchestrator",
        required_blocks=(),
        guards=TERSE,
        topologies={"chat": {"explainer": topology}},
        **settings,
    )
    deck = Deck.of([lead, *plain], settings=told, rubrics=[RUBRIC])
    leading = models.get("orchestrator") or ScriptedModel(asks("explainer"), stitched)
    bound = bind(deck, {"*": answering("unused"), **models, "orchestrator": leading}, {})
    return SmallKit(with_topologies(bound), SqliteStore(":memory:"))


async def explained(
    topology: Topology, models: Mapping[str, Any], cards: Mapping[str, AgentCard] = {}
) -> Reply:
    return await run_turn("explain this", ALICE, joint(topology, models, cards))


def chosen(reply: Reply) -> AnswerChosen:
    [body] = bodies(reply, AnswerChosen)
    return body


def ended(reply: Reply) -> dict[str, tuple[str, float]]:
    """Agent -> how it ended, and when."""
    ends: dict[str, tuple[str, float]] = {}
    for event in reply.events:
        if isinstance(event.body, AgentEnded):
            reason = getattr(event.body.outcome, "reason", "answer")
            ends[event.body.agent] = (reason, round(event.at, 6))
    return ends


RACE = Topology(kind="race", members=("explainer", "quick"))


@pytest.mark.req("SO-7")
async def test_race_the_first_answer_wins_the_rest_is_stopped_and_composition_follows():
    models = {
        "explainer": answering("Slow and thorough.", 3.0),
        "quick": answering("Quick and good.", 1.0),
    }
    reply = await explained(RACE, models)
    assert reply.text == "Quick and good." and reply.events[-1].at == pytest.approx(1.0)
    assert ended(reply) == {
        "quick": ("answer", 1.0),
        "explainer~1": ("cancelled", 1.0),
        "explainer": ("answer", 1.0),
    }
    assert (chosen(reply).winner, chosen(reply).members) == ("quick", ("explainer~1", "quick"))
    assert [(o.agent, o.kind) for o in reply.outcomes] == [("explainer", "answer")], (
        "one call, one outcome"
    )
    assert nothing_runs()


@pytest.mark.req("SO-7", "SO-21")
@pytest.mark.parametrize(
    ("sure", "winner", "at"),
    [(0.6, "quick", 1.0), (0.59, "explainer~1", 3.0)],
)
async def test_race_first_means_the_first_that_meets_the_bar(sure: float, winner: str, at: float):
    cards = {name: card(name, rated=True) for name in ("explainer", "quick")}
    models = {"explainer": rated("Slow", 0.8, 3.0), "quick": rated("Quick", sure, 1.0)}
    reply = await explained(RACE.model_copy(update={"bar": 0.6}), models, cards)
    assert chosen(reply).winner == winner and reply.events[-1].at == pytest.approx(at)


@pytest.mark.req("SO-21")
@pytest.mark.parametrize(("best", "other"), [(1.0, 3.0), (3.0, 1.0)])
async def test_race_when_none_meets_the_bar_the_surest_comes_marked_whenever_it_ended(
    best: float, other: float
):
    cards = {name: card(name, rated=True) for name in ("explainer", "quick", "third")}
    models = {
        "explainer": rated("So", 0.4, other),
        "quick": rated("So-so", 0.5, best),
        "third": failing(OSError("x"), 2.0),
    }
    race = Topology(kind="race", members=("explainer", "quick", "third"), bar=0.6)
    reply = await explained(race, models, cards)
    [outcome] = reply.outcomes
    assert isinstance(outcome, Answer) and "So-so" in outcome.text and outcome.caveat == UNSURE
    assert "with care" in reply.text, "a reservation is passed on"


@pytest.mark.req("SO-21")
async def test_race_where_nobody_answers_is_one_typed_failure():
    models = {"explainer": failing(OSError("x"), 1.0), "quick": failing(ValueError("y"), 2.0)}
    reply = await explained(RACE, models)
    [outcome] = reply.outcomes
    assert outcome.agent == "explainer"
    assert isinstance(outcome, Failure) and outcome.reason == "exception"
    assert "explainer" in reply.text and chosen(reply).winner is None


@pytest.mark.req("SO-7")
@pytest.mark.parametrize(("cap", "members", "dropped"), [(3, 2, ()), (2, 1, ()), (1, 1, ("shop",))])
async def test_members_count_against_the_cap_and_never_crowd_out_what_was_asked(
    cap: int, members: int, dropped: Any
):
    models = {
        "orchestrator": ScriptedModel(asks("explainer", "shop"), stitched),
        "explainer": answering("E", 1.0),
        "quick": answering("Q", 2.0),
        "shop": answering("S"),
    }
    reply = await run_turn("two things", ALICE, joint(RACE, models, {}, cap=4), cap=cap)
    assert len(chosen(reply).members) == members
    assert reply.routing.dropped == dropped and ("S" in reply.text) == (not dropped)


ENSEMBLE = Topology(kind="ensemble", members=("explainer", "second"), judge="judge")
JUDGED = {
    "explainer": card("explainer", eval={"judge": "judge", "rubric": "quality"}),
    "judge": card("judge", handoff={"output_schema": VERDICT}),
}


@pytest.mark.req("SO-7")
async def test_ensemble_a_judge_with_the_rubric_picks_among_all_answers():
    judge = answering('{"best": 2}', 1.0)
    models = {
        "explainer": answering("One view.", 2.0),
        "second": answering("Another view.", 1.0),
        "judge": judge,
    }
    reply = await explained(ENSEMBLE, models, JUDGED)
    assert reply.text == "Another view." and reply.events[-1].at == pytest.approx(3.0), (
        "both, then the judge"
    )
    told = str(judge.seen[0][-1].content)
    assert (
        "It is short." in told
        and "Candidate 1:\nOne view." in told
        and "Request: about explainer" in told
    )
    assert (chosen(reply).winner, chosen(reply).because) == ("second", "preferred by the judge")


@pytest.mark.req("SO-7")
@pytest.mark.parametrize(
    ("merged", "text", "because"),
    [
        ({"text": "A and B.", "confidence": 0.7}, "A and B.", "merged by the judge"),
        (json.dumps({"text": "A and B.", "confidence": 0.7}), "A and B.", "merged by the judge"),
        ("A and B.", "B.", "preferred by the judge"),
        ({"text": "A and B."}, "B.", "preferred by the judge"),
    ],
    ids=["fields", "fields as text", "prose", "a field is missing"],
)
async def test_ensemble_what_a_judge_merges_has_the_form_the_card_asks_for(
    merged: object, text: str, because: str
):
    verdict = VERDICT | {"properties": {"best": {"type": "integer"}, "merged": {}}}
    own = card("explainer", rated=True, eval={"judge": "judge", "rubric": "quality"})
    judged = {
        "explainer": own,
        "second": card("second", rated=True),
        "judge": card("judge", handoff={"output_schema": verdict}),
    }
    models = {
        "explainer": rated("A.", 0.9),
        "second": rated("B.", 0.8),
        "judge": answering(json.dumps({"best": 2, "merged": merged})),
    }
    reply = await explained(ENSEMBLE, models, judged)
    [outcome] = reply.outcomes
    assert (
        isinstance(outcome, Answer)
        and json.loads(outcome.text)["text"] == text
        and chosen(reply).because == because
    )
    assert outcome.confidence == (0.7 if because.startswith("merged") else 0.8)


@pytest.mark.parametrize(
    "judge",
    [failing(OSError("x")), *map(answering, ('{"best": 7}', '{"best": 0}', '{"best": -1}', "hm"))],
)
async def test_ensemble_without_a_verdict_an_answer_comes_with_a_reservation(
    judge: ScriptedModel,
):
    models = {
        "explainer": answering("One view."),
        "second": answering("Another view."),
        "judge": judge,
    }
    reply = await explained(ENSEMBLE, models, JUDGED)
    [outcome] = reply.outcomes
    assert (
        isinstance(outcome, Answer) and outcome.text == "One view." and outcome.caveat == UNJUDGED
    )


EDITOR = card("editor", handoff={"fields": {"draft": {"type": "string", "required": True}}})
PIPELINE = Topology(kind="pipeline", members=("explainer", "editor"))


@pytest.mark.req("SO-7")
async def test_pipeline_the_second_gets_the_firsts_answer_as_a_declared_field():
    editor = answering("A better text.", 1.0)
    models = {"explainer": answering("A draft.", 2.0), "editor": editor}
    reply = await explained(PIPELINE, models, {"editor": EDITOR})
    assert reply.text == "A better text." and reply.events[-1].at == pytest.approx(3.0)
    assert "draft: A draft." in str(editor.seen[0][0].content)


@pytest.mark.req("SO-7")
@pytest.mark.parametrize(("sure", "asked"), [(0.6, 0), (0.59, 1)])
async def test_pipeline_the_second_pass_may_depend_on_how_sure_the_first_is(
    sure: float, asked: int
):
    editor = answering('{"text": "Better", "confidence": 0.9}')
    cards = {"explainer": card("explainer", rated=True), "editor": EDITOR}
    models = {"explainer": rated("Draft", sure), "editor": editor}
    await explained(PIPELINE.model_copy(update={"bar": 0.6}), models, cards)
    assert len(editor.seen) == asked


async def test_pipeline_a_draft_nobody_could_go_over_stands_with_a_reservation():
    models = {"explainer": answering("A draft."), "editor": failing(OSError("x"))}
    [outcome] = (await explained(PIPELINE, models, {"editor": EDITOR})).outcomes
    assert isinstance(outcome, Answer) and outcome.caveat == UNCHECKED


# configuration


@pytest.mark.req("SO-7", "SO-21")
@pytest.mark.parametrize(
    ("topology", "fault"),
    [
        ({"kind": "race", "members": ["explainer"]}, "a race has 2 or 3 members, 1 are listed"),
        (
            {"kind": "race", "members": ["explainer", "quik"]},
            "unknown card 'quik': did you mean 'quick'?",
        ),
        (
            {"kind": "race", "members": ["explainer", "quick"], "bar": 0.5},
            "declares no confidence in its output schema",
        ),
        (
            {"kind": "pipeline", "members": ["explainer", "quick"]},
            "'quick' has no hand-off field 'draft'",
        ),
        (
            {"kind": "pipeline", "members": ["explainer", "quick", "quick"]},
            "a pipeline is two agents, 3 are listed",
        ),
        (
            {"kind": "ensemble", "members": ["explainer", "quick"]},
            "an ensemble needs a judge; name its card",
        ),
        (
            {"kind": "ensemble", "members": ["explainer", "quick"], "judge": "quick"},
            "needs an output schema with the field 'best'",
        ),
        ({"kind": "delegate", "members": ["explainer"]}, "a delegate has no members"),
        (
            {"kind": "race", "members": ["explainer", "quick", "quick"]},
            "3 members count as calls and the cap is 2",
        ),
    ],
)
def test_a_topology_that_cannot_be_carried_out_is_a_fault_of_the_deck(
    topology: dict[str, Any], fault: str
):
    lead = AgentCard(
        id="orchestrator", description="R.", model="offline", sub_agents=("explainer",)
    )
    given = DeckSettings.model_validate(
        {"orchestrator": "orchestrator", "cap": 2, "topologies": {"chat": {"explainer": topology}}}
    )
    with pytest.raises(DeckError) as caught:
        Deck.of([lead, card("explainer"), card("quick")], settings=given)
    assert fault in str(caught.value)
