"""The shipped consumer deck, and what a newcomer does to it (PC1)."""

import re
import shutil
from pathlib import Path

import pytest
import yaml

from kit.compose.deck import Deck, load_deck
from kit.compose.locale import ENGLISH
from kit.compose.models import check_orchestrator
from kit.compose.prompts import plan_prompt
from kit.core.card import AgentCard
from kit.core.errors import DeckError
from kit.core.status import OWN
from kit.worlds.consumer.tools import RENDERS
from kit.worlds.manga.tools import SKILLS
from tests.kits import CONSUMER_AGENTS, STATUSES
from tests.worlds import TOOL_IDS

CARDS = Path(__file__).parents[2] / "cards"
REQUIRED = ("persona-fetch-assistant", "format-conversational", "safety-base")


@pytest.fixture(scope="module")
def deck() -> Deck:
    return load_deck(CARDS / "consumer")


@pytest.fixture
def cards(tmp_path: Path) -> Path:
    """A copy of cards/ to change."""
    return Path(shutil.copytree(CARDS, tmp_path / "cards"))


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def prefixes(deck: Deck) -> dict[str, str]:
    return {card.id: plan_prompt(card, deck).prefix for card in deck.cards.values()}


@pytest.mark.parametrize("environment", ["default", "production"])
def test_the_consumer_deck_loads_without_a_warning_and_names_only_tools_there_are(environment: str):
    deck = load_deck(CARDS / "consumer", environment=environment)
    assert deck.warnings == ()
    elsewhere = {spec.id for spec in (*RENDERS, *SKILLS)} - {"render_offers"}
    assert {tool for card in deck.cards.values() for tool in card.tools} == TOOL_IDS - elsewhere
    assert deck.tool_settings.keys() <= TOOL_IDS


@pytest.mark.req("PC1-S5.9", "PC1-FR-4", "PC1-S4.3")
def test_eight_verticals_ship_each_with_tools_and_blocks_of_its_own(deck: Deck):
    root = deck.cards[deck.settings.orchestrator]
    assert root.sub_agents == CONSUMER_AGENTS
    tools = [tool for name in CONSUMER_AGENTS for tool in deck.cards[name].tools]
    assert len(tools) == len(set(tools)) >= 2 * len(CONSUMER_AGENTS)
    for name in CONSUMER_AGENTS:
        owned = [
            block.category
            for block in plan_prompt(deck.cards[name], deck).blocks
            if block.owner == name
        ]
        assert owned == ["persona", "instructions", "capabilities"]


@pytest.mark.req("PC1-S5.7c", "PC1-FR-12", "PC1-S9.1-2", "PC1-S9.5-2")
def test_a_deck_whose_platform_block_is_gone_is_refused(cards: Path):
    (cards / "blocks" / "platform" / "safety-base.md").unlink()
    with pytest.raises(
        DeckError, match=r"deck\.yaml:\d+: required block 'safety-base' is not in the registry"
    ):
        load_deck(cards / "consumer")


@pytest.mark.req("PC1-S5.7", "PC1-S4.3")
@pytest.mark.parametrize(
    ("block", "users"),
    [
        ("shared/context-location-aware.md", {"shop", "restaurants", "retailer_context"}),
        ("platform/safety-base.md", {*CONSUMER_AGENTS, "orchestrator"}),
    ],
)
def test_an_edit_of_one_block_file_reaches_exactly_its_users(
    deck: Deck, cards: Path, block: str, users: set[str]
):
    before = prefixes(deck)
    with (cards / "blocks" / block).open("a", encoding="utf-8") as file:
        file.write("Mention the weather.\n")
    after = prefixes(load_deck(cards / "consumer"))
    assert {name for name in before if before[name] != after[name]} == users
    for name in users:
        assert after[name].replace("\nMention the weather.", "") == before[name]


NINTH = """
id: pharmacy
description: >-
  {words}
model: offline
tools: [find_prescription_prices]
prompt_blocks: [persona-pharmacy, instructions-pharmacy, safety-financial]
"""


@pytest.mark.req("PC1-S5.9", "PC1-S4.3")
def test_a_ninth_vertical_is_a_card_its_blocks_and_one_line(deck: Deck, cards: Path):
    (cards / "consumer" / "pharmacy.yaml").write_text(
        NINTH.format(words="Compares what a prescription costs. " * 24)
    )
    folder = cards / "blocks" / "pharmacy"
    folder.mkdir()
    for category in ("persona", "instructions"):
        text = (
            f"---\nid: {category}-pharmacy\ncategory: {category}\nowner: pharmacy\n---\nThe "
            f"{category} of the pharmacy.\n"
        )
        (folder / f"{category}-pharmacy.md").write_text(text)
    edit(
        cards / "consumer" / "orchestrator.yaml",
        "  - retailer_context\n",
        "  - retailer_context\n  - pharmacy\n",
    )

    after = load_deck(
        cards / "consumer",
        known=[
            *(tool for card in deck.cards.values() for tool in card.tools),
            "find_prescription_prices",
        ],
    )

    assert after.warnings == ()
    newcomer = after.cards["pharmacy"]
    assert after.active_sub_agents(after.cards["orchestrator"])[-1] is newcomer
    prompt = plan_prompt(newcomer, after)
    assert [block.id for block in prompt.blocks] == [
        *REQUIRED,
        "persona-pharmacy",
        "instructions-pharmacy",
        "safety-financial",
    ]
    assert "The persona of the pharmacy.\n\nThe instructions of the pharmacy." in prompt.prefix
    others = {name: text for name, text in prefixes(after).items() if name != "pharmacy"}
    assert others == prefixes(deck)


@pytest.mark.req("PC1-S5.9b")
def test_a_vertical_of_the_consumer_deck_cannot_become_an_orchestrator(cards: Path):
    with (cards / "consumer" / "shop.yaml").open("a") as file:
        file.write("sub_agents: [offer_details]\n")
    with pytest.raises(
        DeckError, match=r"shop\.yaml:\d+: card 'shop' declares sub_agents; only the orchestrator"
    ):
        load_deck(cards / "consumer")


@pytest.mark.req("SAT-17")
def test_the_routing_block_carries_every_rule_of_the_source(deck: Deck):
    text = deck.blocks["instructions-routing"].text
    found: list[tuple[str, str]] = re.findall(
        r"^<(\w+)>(.*?)</\1>", text.removeprefix("<routing>\n"), re.DOTALL | re.MULTILINE
    )
    rules = {name: " ".join(rule.split()) for name, rule in found}
    assert text in plan_prompt(deck.cards["orchestrator"], deck).prefix
    for rule, words in {
        "latest_message_only": "never carried forward",
        "exact_words": "exact words as query",
        "support_keywords": "didn't scan",
        "support_taxonomy": "under 300 characters",
        "images": "product or a shelf goes to ask_shop",
        "greetings": "call nothing",
        "preamble": "one short sentence",
        "top_n": "Never call more tools than the limit",
        "own_up": "Say so in plain words",
    }.items():
        assert words in rules[rule], rule


@pytest.mark.req("SAT-16", "SAT-17")
def test_the_twelve_support_topics_are_the_same_in_card_and_routing_block(deck: Deck):
    fields = deck.cards["support"].handoff.fields
    topics = fields["support_category"].enum
    assert " ".join(topics) == (
        "missing_points ereceipts rejected_receipt rewards fetch_shop fetch_play fetch_card point_pass referrals "
        "profile_help goodrx social"
    )
    taxonomy = re.findall(
        r"(\w+)\s\(",
        deck.blocks["instructions-routing"].text.split("<support_taxonomy>")[1].split("</")[0],
    )
    assert taxonomy == list(topics)
    assert fields["support_summary"].max_length == 299


def test_every_status_has_words(deck: Deck):
    manga = load_deck(CARDS / "manga")
    own = ENGLISH.statuses.model_dump()
    assert (
        own.keys() == OWN.keys()
        and {*deck.settings.status_phrases, *manga.settings.status_phrases, *own} == STATUSES
    )


@pytest.mark.req("PC1-FR-1", "PC1-S5.2")
def test_the_cards_of_the_source_load_as_they_are_written():
    card = AgentCard.model_validate(
        yaml.safe_load(
            """
            id: rewards
            description: Handles points balance, redemption history, and points-by-method analytics
            role: native
            model: gpt-5.4-mini-low
            tools: [get_user_points, get_redemption_history, calculate_redemption, get_points_by_method]
            prompt_blocks: [persona-rewards, instructions-rewards, safety-financial]
            sub_agents: []
            tuning: {reasoning_effort: low, text_verbosity: medium}
            """
        )
    )
    shipped = load_deck(CARDS / "consumer").cards["rewards"]
    assert (card.tools, card.model, card.tuning) == (shipped.tools, shipped.model, shipped.tuning)
    assert set(card.prompt_blocks) <= set(shipped.prompt_blocks)


@pytest.mark.req("PC1-NFR-6")
def test_no_model_that_ships_fails_to_orchestrate(deck: Deck):
    for spec in deck.models.values():
        check_orchestrator(spec)
    assert deck.models["gpt-5.4-nano"].context_window == 272_000


def test_no_block_or_card_names_a_user_or_a_place(deck: Deck):
    """Per-user values stay in the suffix; a template in a block would put them in the prefix."""
    for card in deck.cards.values():
        assert not re.search(
            r"\{[a-z_]*(user|location|date|locale)[a-z_]*\}", plan_prompt(card, deck).prefix
        )
