"""The discovery deck: a seeded library, narrow contracts held by the runtime, four topologies end
to end, no spoiler served."""

import importlib.util
import json
import re
from functools import lru_cache
from pathlib import Path
from types import ModuleType

import pytest

from kit.compose.deck import Deck, load_deck
from kit.core.bodies.call import AgentStarted, AnswerChosen
from kit.core.card import HandoffField
from kit.core.context import Principal
from kit.core.outcome import Answer
from kit.runtime.handle import Reply
from kit.settings import Settings
from kit.wire import open_kit
from kit.worlds.manga.enrichers import ENRICHERS
from kit.worlds.manga.library import Library
from kit.worlds.service.parameters import Parameters
from tests.kits import bodies
from tests.runtime.test_contract import MANGA

ROOT = Path(__file__).parent.parent.parent
SETTINGS = Settings(deck=ROOT / "cards" / "manga", store=":memory:", pace=0.0, today="2026-11-01")


@lru_cache(maxsize=1)
def deck() -> Deck:
    return load_deck(SETTINGS.deck)


@lru_cache(maxsize=1)
def library() -> Library:
    return Library(ROOT / "data" / "manga")


def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_manga", ROOT / "data" / "make_manga.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


async def asked(message: str, surface: str | None = None, pattern: str | None = None) -> Reply:
    async with open_kit(SETTINGS) as kit:
        return await kit.ask(message, kit.session("s"), pattern, surface=surface)


def secrets() -> set[str]:
    return {arc.hidden for title in library().titles.values() for arc in title.arcs}


@pytest.mark.req("SO-14")
def test_the_script_writes_the_committed_library_byte_for_byte(tmp_path: Path):
    script().write(tmp_path)
    committed = ROOT / "data" / "manga"
    assert [
        p.name
        for p in sorted(tmp_path.iterdir())
        if p.read_bytes() != (committed / p.name).read_bytes()
    ] == []
    titles = library().titles
    assert len(titles) == 320 and len({title.title for title in titles.values()}) == 320
    assert all(link.id in titles for title in titles.values() for link in title.links)
    assert all(key in titles for reader in library().readers.values() for key in reader.read)


@pytest.mark.req("SO-14", "SO-23")
def test_the_explainers_contract_is_that_of_its_design():
    card = deck().cards["explainer"]
    policy, fields = deck().policy(card), card.handoff.fields
    designed = MANGA.policy.model_dump(exclude_unset=True)
    assert policy.model_dump(include=set(designed)) == designed
    assert card.handoff.max_query_tokens == MANGA.handoff.max_query_tokens
    ids, tastes = fields["candidate_title_ids"], fields["user_prefs_summary"]
    assert ids == HandoffField(
        type="array", max_items=20, source="shown", description=ids.description
    )
    assert (tastes.max_tokens, tastes.pii, tastes.source) == (800, True, "conversation")
    assert (
        fields["user_locale"].source == "locale"
        and card.handoff.closed
        and card.fallback_model is not None
    )
    item = (card.handoff.output_schema or {})["properties"]["ranked_explanations"]["items"][
        "properties"
    ]
    assert item["explanation"]["maxSentences"] == 2 and item["confidence"]["type"] == "number"
    assert card.eval is not None and card.eval.rubric == "explanation-quality-v3" in deck().rubrics


@pytest.mark.req("SO-7", "SO-14")
@pytest.mark.parametrize(
    ("message", "agent", "policy", "members"),
    [
        (
            "recommend me a dark fantasy that is new",
            "explainer",
            "race",
            ("explainer~1", "explainer_quick"),
        ),
        (
            "compare Iron Wolf and Signal Colony",
            "comparator",
            "ensemble",
            ("comparator~1", "comparator_reviews"),
        ),
        (
            "what is Signal Colony about, without spoilers",
            "arc_summarizer",
            "pipeline",
            ("arc_summarizer~1", "spoiler_editor"),
        ),
    ],
)
async def test_the_topologies_run_end_to_end_on_the_offline_stand_in(
    message: str, agent: str, policy: str, members: tuple[str, ...]
):
    reply = await asked(message)
    [chosen] = bodies(reply, AnswerChosen)
    assert (chosen.agent, chosen.policy, chosen.members) == (
        agent,
        policy,
        members,
    ) and chosen.winner is not None
    assert reply.status == "ok" and reply.routing.invoked == (agent,)
    assert [type(outcome) for outcome in reply.outcomes] == [Answer]
    assert len(reply.text) > 60 and "{" not in reply.text and not re.search(r"\w_\w", reply.text), (
        "sentences, not data"
    )


@pytest.mark.req("SO-7", "SO-14")
async def test_in_a_batch_the_same_question_is_delegated_and_costs_one_agent():
    message = "recommend me a dark fantasy that is new"
    chat, batch = await asked(message), await asked(message, surface="batch")
    assert not any(isinstance(event.body, AnswerChosen) for event in batch.events)
    assert batch.usage.model_calls < chat.usage.model_calls
    assert [o.agent for o in batch.outcomes] == ["explainer"]


@pytest.mark.req("SO-14")
def test_what_an_arc_reveals_is_served_to_nobody():
    reader, kinds = Principal(tenant_id="acme", user_id="u-001"), list(ENRICHERS.values())
    served = json.dumps(
        [
            kind.serve(library(), reader, Parameters(id=key))
            for kind in kinds
            for key in list(library().titles)[::8]
        ]
    )
    assert len(kinds) == 5 and '"gist"' in served
    assert [secret for secret in secrets() if secret in served] == []


@pytest.mark.req("SO-14")
@pytest.mark.parametrize("pattern", ["mediated", "direct", "monolith"])
async def test_no_answer_names_a_title_by_its_id(pattern: str):
    questions = (
        "Recommend me a mystery manga and compare it with Salt Clock",
        "What hangs together with Glass Tide?",
    )
    async with open_kit(SETTINGS) as kit:
        replies = [
            await kit.ask(question, kit.session(question[:4]), pattern) for question in questions
        ]
    assert [re.findall(r"\bmg-\d+", reply.text) for reply in replies] == [[], []]
    assert all(reply.status == "ok" and len(reply.text) > 40 for reply in replies)


async def talk(*messages: str, faults: tuple[str, ...] = ()) -> list[Reply]:
    """The replies to messages of one session; `faults` hold for all but the last."""
    async with open_kit(SETTINGS, faults=True) as kit:
        session = kit.session("s")
        replies = [await kit.ask(message, session, faults=faults) for message in messages[:-1]]
        return [*replies, await kit.ask(messages[-1], session)]


def started(reply: Reply) -> AgentStarted:
    return next(body for body in bodies(reply, AgentStarted))


@pytest.mark.req("PC1-S5.6d")
async def test_the_first_arc_of_a_title_is_no_title_that_was_shown():
    listed, arc, first = await talk(
        "recommend a mystery manga",
        "sum up the first arc of Iron Wolf",
        "sum up the first title",
    )
    assert len(listed.outcomes) == 1 and "title_id" not in started(arc).fields
    assert "Iron Wolf" in arc.text
    assert started(first).fields["title_id"].startswith("mg-")


def titles_in(text: str) -> set[str]:
    return {t.title for t in library().titles.values() if re.search(rf"\b{t.title}\b", text)}


@pytest.mark.req("SO-14")
@pytest.mark.parametrize(
    ("message", "unknown", "close"),
    [
        ("compare Ashen Tide and Iron Lantern", ("Ashen Tide", "Iron Lantern"), "Ashen Eclipse"),
        ("recommend something like Berserk", ("Berserk",), ""),
        ("compare One Piece with Iron Wolf", ("One Piece",), "Iron Wolf"),
        ("sum up the first arc of Ashen Tide", ("Ashen Tide",), "Ashen Eclipse"),
        ("Compare Iron Wolf and Ashen Tide", ("Ashen Tide",), "Iron Wolf"),
    ],
)
async def test_a_title_that_is_not_there_is_said_not_to_be_there_and_not_swapped(
    message: str, unknown: tuple[str, ...], close: str
):
    reply = await asked(message)
    for name in unknown:
        assert f'There is no title called "{name}" in this library' in reply.text
    assert close in reply.text
    offered = "; ".join(re.findall(r"close ones are [^.]*", reply.text))
    assert titles_in(reply.text) - titles_in(offered) <= {"Iron Wolf"}, reply.text
    assert "of 100" not in reply.text or "Iron Wolf" in message


async def test_what_a_draft_lacked_is_said_of_the_answer_that_went_over_it():
    async with open_kit(SETTINGS, faults=True) as kit:
        message = "sum up the first arc of Iron Wolf"
        reply = await kit.ask(message, kit.session("s"), faults=["arc_summarizer=error_envelope"])
    (outcome,) = reply.outcomes
    assert isinstance(outcome, Answer) and outcome.data_faults
    assert "One reservation about story arcs: The data for this was not available" in reply.text


async def test_what_no_title_has_is_said_before_others_are_offered():
    reply = await asked("something about dinosaurs")
    assert reply.text.startswith('No titles for "dinosaurs" were found. ')
    reviews = await asked("Is One Piece good?")
    assert 'No titles for "piece" were found.' in reviews.text
    assert re.search(r"\w+ \w+: (?:97 of 100|Praised)", reviews.text), "whose reviews they are"


@pytest.mark.parametrize(
    "message",
    [
        "What should I read next?",
        "I am bored, what can I read",
        "Because I love wolves, recommend another",
        "Recommend a dark fantasy for a rainy Sunday, please",
        "Compare Iron Wolf with Hollow Crown",
        "Recommend a mystery manga, and sum up the first arc of Iron Wolf without spoilers",
    ],
)
async def test_nothing_is_called_unknown_that_is_there_or_names_no_title(message: str):
    text = (await asked(message)).text
    assert "There is no title called" not in text and "No titles for" not in text
