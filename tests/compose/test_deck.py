"""A deck's faults: each with file and line, all in one report, warnings apart."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kit.compose.deck import Block, Deck, DeckSettings, load_deck
from kit.core.card import AgentCard
from kit.core.errors import BindError, DeckError
from kit.core.model import ModelSpec
from kit.runtime.team import bind
from tests.kits import write_files

BASE: dict[str, str] = {
    "cards/demo/deck.yaml": "orchestrator: root\nrequired_blocks:\n  - safety-base\n",
    "cards/demo/root.yaml": "id: root\ndescription: Asks the others.\nmodel: "
    "offline\nsub_agents:\n  - shop\n  - rewards\n",
    "cards/demo/shop.yaml": (
        "id: shop\ndescription: Finds deals.\nmodel: small\ntools:\n  - "
        "search_offers\nprompt_blocks:\n  - persona-shop\n"
    ),
    "cards/demo/rewards.yaml": "id: rewards\ndescription: Counts points.\nmodel: "
    "offline\ntools:\n  - get_user_points\n",
    "cards/blocks/platform/safety-base.md": "---\nid: safety-base\ncategory: safety\nowner: "
    "platform\n---\nBe truthful.\n",
    "cards/blocks/shop/persona-shop.md": "---\nid: persona-shop\ncategory: persona\nowner: "
    "shop\n---\nYou find deals.\n",
    "cards/models.yaml": "small:\n  provider: openai\n",
    "cards/settings/default.yaml": "flags: {}\n",
}
TOOLS = ("search_offers", "get_user_points")


def write(folder: Path, changes: Mapping[str, str | None] | None = None) -> Path:
    """The sound deck, with some files replaced or (None) left out."""
    files = {**BASE, **(changes or {})}
    write_files(folder, {name: text for name, text in files.items() if text is not None})
    return folder / "cards" / "demo"


def faults(folder: Path, changes: Mapping[str, str | None]) -> list[str]:
    """What load_deck finds, with the folder cut off."""
    with pytest.raises(DeckError) as caught:
        load_deck(write(folder, changes), known=TOOLS)
    return [fault.replace(f"{folder}/cards/", "") for fault in caught.value.faults]


def card(name: str, **lines: str) -> dict[str, str]:
    """One card's file: the sound text with lines put after it."""
    return {
        f"cards/demo/{name}.yaml": BASE[f"cards/demo/{name}.yaml"]
        + "".join(f"{key}: {value}\n" for key, value in lines.items())
    }


SHOP, ROOT, DECK = "cards/demo/shop.yaml", "cards/demo/root.yaml", "cards/demo/deck.yaml"
FAULTS: dict[str, tuple[Mapping[str, str | None], str]] = {
    "list instead of fields": (
        {SHOP: "- id\n- shop\n"},
        "demo/shop.yaml:1: expected a mapping of fields, found a list",
    ),
    "unknown field": (
        {SHOP: "id: shop\ndescription: Finds.\nmodel: offline\npromt_blocks: []\n"},
        "demo/shop.yaml:4: unknown field 'promt_blocks': did you mean 'prompt_blocks'",
    ),
    "unknown nested field": (
        {
            SHOP: "id: shop\ndescription: Finds.\nmodel: offline\nhandoff:\n  fields:\n    topic:\n      typ: string\n"
        },
        "demo/shop.yaml:7: unknown field 'handoff.fields.topic.typ': did you mean 'type'?",
    ),
    "no model": (
        {SHOP: "id: shop\ndescription: Finds.\n"},
        "demo/shop.yaml:1: no model: name a key of models.yaml, or an agent of your own by `run:`",
    ),
    "missing field": (
        {SHOP: "id: shop\nmodel: offline\n"},
        "demo/shop.yaml:1: field 'description' is missing; add it",
    ),
    "wrong type": (
        card("shop", version="2"),
        "demo/shop.yaml:8: 'version' must be a string, got 2; put it in quotes",
    ),
    "wrong choice": (
        card("shop", status="on_hold"),
        "demo/shop.yaml:8: 'status': input should be 'active' or 'draft', got 'on_hold'",
    ),
    "unknown model": (
        {SHOP: "id: shop\ndescription: Finds.\nmodel: smal\n"},
        "demo/shop.yaml:3: unknown model 'smal': did you mean 'small'?",
    ),
    "unknown block": (
        {SHOP: BASE[SHOP].replace("persona-shop", "persona-shp")},
        "demo/shop.yaml:7: unknown block 'persona-shp': did you mean 'persona-shop'?",
    ),
    "unknown sub-agent": (
        {ROOT: BASE[ROOT] + "  - reward\n"},
        "demo/root.yaml:7: unknown sub-agent 'reward': did you mean 'rewards'?",
    ),
    "unknown tool": (
        {SHOP: BASE[SHOP].replace("search_offers", "search_ofers")},
        "demo/shop.yaml:5: unknown tool 'search_ofers': did you mean 'search_offers'?",
    ),
    "listed twice": (
        {ROOT: BASE[ROOT] + "  - shop\n"},
        "demo/root.yaml:7: 'shop' is listed twice in sub_agents; keep one",
    ),
    "cycle": (
        {ROOT: BASE[ROOT] + "  - root\n"},
        "demo/root.yaml:7: 'root' would ask itself; take it out",
    ),
    "required block missing": (
        {DECK: BASE[DECK] + "  - safty-base\n"},
        "demo/deck.yaml:4: required block 'safty-base' is not in the registry: did you mean 'safety-base'?",
    ),
    "required block of a vertical": (
        {
            DECK: BASE[DECK] + "  - persona-shop\n",
            SHOP: "id: shop\ndescription: Finds.\nmodel: offline\n",
        },
        "demo/deck.yaml:4: required block 'persona-shop' is owned by 'shop'; a required block belongs to the platform",
    ),
    "required block declared by a card": (
        {SHOP: BASE[SHOP] + "  - safety-base\n"},
        "demo/shop.yaml:8: required block 'safety-base' is put at the head of every prompt already; take it out",
    ),
    "platform block shadowed": (
        {
            "cards/blocks/shop/mine.md": "---\nid: safety-base\ncategory: safety\nowner: shop\n---\nAnything goes.\n"
        },
        "blocks/shop/mine.md:2: 'shop' shadows the platform block 'safety-base'; give the block another id",
    ),
    "vertical that speaks for the platform": (
        {
            "cards/blocks/shop/mine.md": "---\nid: mine\ncategory: safety\nowner: platform\n---\nAnything goes.\n"
        },
        "blocks/shop/mine.md:4: block 'mine' in the folder of 'shop' says its owner is 'platform'; "
        "a vertical may not own a platform block; move the file or change the owner",
    ),
    "duplicate block id": (
        {
            "cards/blocks/shop/two.md": "---\nid: persona-shop\ncategory: persona\nowner: shop\n---\nYou.\n"
        },
        "blocks/shop/two.md:2: block id 'persona-shop' is taken by",
    ),
    "block without front matter": (
        {"cards/blocks/shop/x.md": "You are.\n"},
        "blocks/shop/x.md:1: no front matter; begin with",
    ),
    "duplicate card id": (
        {"cards/demo/shop2.yaml": "\n" + BASE[SHOP]},
        "demo/shop2.yaml:2: card id 'shop' is taken by",
    ),
    "tool that is called like a sub-agent": (
        {SHOP: BASE[SHOP].replace("search_offers", "ask_rewards")},
        "demo/shop.yaml:5: tool 'ask_rewards' has the name under which card 'rewards' is called; rename one",
    ),
    "parent that holds its child's tool": (
        card("root", tools="[search_offers]"),
        "demo/root.yaml:7: tool 'search_offers' is held by the sub-agent 'shop' too; a parent "
        "asks, so take it out here",
    ),
    "configuration of a tool the card lacks": (
        card("shop", tool_config="{search_offer: {limit: 3}}"),
        "demo/shop.yaml:8: tool_config for 'search_offer', which the card does not list: did you mean 'search_offers'?",
    ),
    "new tool without cases": (
        card("shop", tool_grants="{search_offers: {since: 2026-10-20}}"),
        "demo/shop.yaml:8: 'search_offers' is new and no case in eval.tool_cases has mode "
        "returns_nothing or fails for it; add",
    ),
    "new tool with half its cases": (
        card(
            "shop",
            tool_grants="{search_offers: {since: 2026-10-20}}",
            eval="{judge: rule, rubric: policy, tool_cases: [{tool: search_offers, mode: fails, ask: a, never: [deal]}]}",
        ),
        "demo/shop.yaml:8: 'search_offers' is new and no case in eval.tool_cases has mode "
        "returns_nothing for it; add one",
    ),
    "case for a tool the card lacks": (
        card(
            "shop",
            eval="{judge: rule, rubric: policy, tool_cases: [{tool: search_offer, mode: fails, ask: a, never: [deal]}]}",
        ),
        "demo/shop.yaml:8: a case for 'search_offer', which the card does not list: did you mean 'search_offers'?",
    ),
    "case that any answer passes": (
        card(
            "shop",
            eval="{judge: rule, rubric: policy, tool_cases: [{tool: search_offers, mode: fails, ask: a}]}",
        ),
        "demo/shop.yaml:8: any answer would pass this case; give says, never or both",
    ),
    "judge that is no card": (
        card("shop", eval="{judge: critik, rubric: r}"),
        "demo/shop.yaml:8: unknown judge 'critik': known are rewards, root, shop",
    ),
    "rubric that is nowhere": (
        card("shop", eval="{judge: root, rubric: kind}"),
        "demo/shop.yaml:8: unknown rubric 'kind': ",
    ),
    "threshold in points": (
        card("shop", eval="{judge: rule, rubric: policy, threshold: 95}"),
        "demo/shop.yaml:8: 'eval.threshold': input should be less than or equal to 1, got 95",
    ),
    "text for a list": (
        card("shop", requests="coffee deals"),
        "demo/shop.yaml:8: 'requests' must be a list, such as [first, second], got 'coffee deals'",
    ),
    "hand-off field that every call has": (
        card("shop", handoff="{fields: {query: {}}}"),
        "demo/shop.yaml:8: every ask_<id> has an argument 'query' already; give the field another name",
    ),
    "empty description": (
        {SHOP: "id: shop\nmodel: offline\ndescription: ' '\n"},
        "demo/shop.yaml:3: empty description; say what the agent answers",
    ),
    "description told twice": (
        {SHOP: "id: shop\nmodel: offline\ndescription: counts  POINTS.\n"},
        "demo/shop.yaml:3: same description as on card 'rewards'; say what sets this agent apart",
    ),
    "request told twice": (
        card("shop", requests="[find tea, Count  POINTS]")
        | card("rewards", requests="[count points]"),
        "demo/shop.yaml:8: same request as on card 'rewards'; leave it where it belongs",
    ),
    "empty request": (
        card("shop", requests="[find tea, ' ']"),
        "demo/shop.yaml:8: empty request; take it out",
    ),
    "orchestrator that is no card": (
        {DECK: BASE[DECK].replace("root", "rooot")},
        "demo/deck.yaml:1: unknown orchestrator 'rooot': did you mean 'root'?",
    ),
    "skill service whose script is not there": (
        {DECK: BASE[DECK] + "skill_service: {command: [python, -u, skils.py, --port, 3.py]}\n"},
        "demo/deck.yaml:4: there is no file skils.py to run in ",
    ),
    "unknown status phrase": (
        {
            DECK: BASE[DECK]
            + "statuses: [searching_offers]\nstatus_phrases:\n  searching_offer: Looking\n"
        },
        "demo/deck.yaml:6: unknown status 'searching_offer': did you mean 'searching_offers'",
    ),
    "default that nobody can ask": (
        {DECK: BASE[DECK] + "default_sub_agent: root\n"},
        "demo/deck.yaml:4: default 'root' is no sub-agent of 'root': known are rewards, shop",
    ),
    "support agent that nobody can ask": (
        {DECK: BASE[DECK] + "support_agent: root\n"},
        "demo/deck.yaml:4: support agent 'root' is no sub-agent of 'root': known are rewards, shop",
    ),
    "no word about required blocks": (
        {DECK: "orchestrator: root\n"},
        "demo/deck.yaml:1: no required_blocks: name the blocks every prompt begins with, or say `required_blocks: []`",
    ),
    "exempt orchestrator": (
        {DECK: BASE[DECK] + "exempt: [root]\n"},
        "demo/deck.yaml:4: 'root' speaks in conversations; only helper cards go without the required blocks",
    ),
    "exempt card that is none": (
        {DECK: BASE[DECK] + "exempt: [judge]\n"},
        "demo/deck.yaml:4: unknown card 'judge': known are rewards, root, shop",
    ),
    "model that falls back on nothing": (
        {"cards/models.yaml": "small:\n  provider: openai\n  fallback: big\n"},
        "models.yaml:3: unknown model 'big': known are offline, small",
    ),
    "no deck.yaml": ({DECK: None}, "demo/deck.yaml:1: no such file; make it"),
    "no models.yaml": (
        {"cards/models.yaml": None},
        "models.yaml:1: no such file; make it, or let every card name",
    ),
    "not UTF-8": ({}, "demo/shop.yaml:1: not UTF-8 text; save it as UTF-8"),
}


@pytest.mark.req("PC1-FR-1", "PC1-S5.2", "PC1-S9.1-1", "SO-16")
@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_one_line_with_file_line_and_fix(name: str, tmp_path: Path):
    changes, expected = FAULTS[name]
    folder = write(tmp_path, changes)
    if name == "not UTF-8":
        (folder / "shop.yaml").write_bytes(b"id: \xff\n")
        changes = {SHOP: None}
    found = faults(tmp_path, changes)
    assert len(found) == 1, found
    assert found[0].startswith(expected), found[0]


@pytest.mark.req("SO-6")
def test_a_cycle_is_refused_at_each_card_that_closes_it(tmp_path: Path):
    found = faults(
        tmp_path, card("shop", sub_agents="[rewards]") | card("rewards", sub_agents="[root]")
    )
    for agent in ("shop", "rewards"):
        words = f"card {agent!r} declares sub_agents; only the orchestrator 'root' may"
        assert len([fault for fault in found if words in fault]) == 1


@pytest.mark.req("PC1-S5.2")
def test_ten_faults_are_ten_lines_of_one_report(tmp_path: Path):
    found = faults(
        tmp_path,
        {
            DECK: BASE[DECK] + "  - safety-more\ndefault_sub_agent: shopping\n",
            ROOT: BASE[ROOT] + "  - shoppe\ntools: [ask_shop]\n",
            SHOP: "id: shop\ndescription: ''\nmodel: smaller\ntools: [search_ofers]\nprompt_blocks: [persona]\n",
            "cards/demo/rewards.yaml": "id: rewards\ndescription: [\n",
            "cards/demo/play.yaml": "id: play\nnodel: offline\nmodel: offline\ndescription: Games.\n",
            "cards/models.yaml": "small:\n  provider: openai\n  price: 3\n",
        },
    )
    assert [fault.split(": ")[0] for fault in found] == [
        "demo/deck.yaml:4",
        "demo/deck.yaml:5",
        "demo/play.yaml:2",
        "demo/rewards.yaml:3",
        "demo/root.yaml:7",
        "demo/root.yaml:8",
        "demo/shop.yaml:2",
        "demo/shop.yaml:3",
        "demo/shop.yaml:4",
        "demo/shop.yaml:5",
        "models.yaml:3",
    ]


def test_what_could_not_be_read_is_not_called_unknown(tmp_path: Path):
    found = faults(
        tmp_path,
        {
            SHOP: "id: shop\nmodel: [offline\n",
            "cards/blocks/platform/safety-base.md": "Be truthful.\n",
            "cards/models.yaml": "small: {provider: openai\n",
        },
    )
    assert [fault.split(":")[0] for fault in found] == [
        "blocks/platform/safety-base.md",
        "demo/shop.yaml",
        "models.yaml",
    ]


def test_an_unknown_environment_names_the_nearest(tmp_path: Path):
    with pytest.raises(
        DeckError,
        match=r"production\.yaml:1: unknown environment 'production': did you mean 'prod'",
    ):
        load_deck(write(tmp_path, {"cards/settings/prod.yaml": ""}), environment="production")


def test_a_deck_loads_from_inside_its_own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(write(tmp_path))
    assert load_deck(".").name == "demo"


@pytest.mark.req("PC2-S5.2b", "PC1-S9.1-1", "PC2-S9.1-2")
def test_a_card_id_passes_exactly_when_it_makes_a_legal_tool_name():
    for name in ("a", "Shop_2-b", "-", "a" * 60):
        card = AgentCard(id=name, description="x", model="offline")
        assert Deck.of([card], required_blocks=()).cards[name].tool_name == f"ask_{name}"
    for name in ("gift cards", "a" * 61, "é", "a.b", "a\n"):
        card = AgentCard(id=name, description="x", model="offline")
        with pytest.raises(DeckError, match="makes no tool name"):
            Deck.of([card], required_blocks=())


ODD = [
    "!!timestamp x",
    "!!binary x",
    "&a [*a]",
    "<<: 1\n",
    "? [a]\n: b\n",
    "on: 1\n",
    "\ufeff",
    "[" * 400,
    "=",
    "1e999",
    "- ",
]


@settings(
    max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    where=st.integers(0, 10_000),
    put=st.text(max_size=6)
    | st.text("&*!|>{}[]:-#%@`'\"?<~, \n\t\r\0a1", max_size=8)
    | st.sampled_from(ODD),
    which=st.sampled_from(sorted(BASE)),
)
def test_no_damage_to_a_file_ends_in_a_traceback(tmp_path: Path, where: int, put: str, which: str):
    text = BASE[which]
    at = where % (len(text) + 1)
    damaged = text[:at] + put + text[at:]
    folder = write(tmp_path, {which: damaged.encode("utf-8", "replace").decode()})
    try:
        load_deck(folder, known=TOOLS)
    except DeckError as error:
        assert error.faults


# ── values ─────────────────────────────────────────────────────────────────────────────────────────


def test_a_deck_built_in_python_equals_the_loaded_one(tmp_path: Path):
    built = Deck.of(
        [
            AgentCard(
                id="rewards",
                description="Counts points.",
                model="offline",
                tools=("get_user_points",),
            ),
            AgentCard(
                id="root",
                description="Asks the others.",
                model="offline",
                sub_agents=("shop", "rewards"),
            ),
            AgentCard(
                id="shop",
                description="Finds deals.",
                model="small",
                tools=("search_offers",),
                prompt_blocks=("persona-shop",),
            ),
        ],
        [
            Block(id="safety-base", category="safety", owner="platform", text="Be truthful."),
            Block(id="persona-shop", category="persona", owner="shop", text="You find deals."),
        ],
        DeckSettings(orchestrator="root", required_blocks=("safety-base",)),
        [ModelSpec(key="small", provider="openai")],
        name="demo",
        known=TOOLS,
    )
    assert built == load_deck(write(tmp_path), known=TOOLS)


@pytest.mark.req("PC1-FR-12")
@pytest.mark.parametrize("settings", [None, DeckSettings(orchestrator="a")])
def test_a_deck_of_values_says_itself_that_no_block_is_required(settings: DeckSettings | None):
    card = AgentCard(id="a", description="a", model="offline")
    with pytest.raises(DeckError, match=r"settings 'deck': no required_blocks: name the blocks"):
        Deck.of([card], settings=settings)
    bare = Deck.of([card], settings=DeckSettings(orchestrator="a", required_blocks=()))
    assert bare == Deck.of([card], required_blocks=())
    assert bare == Deck.of([card], settings=DeckSettings(orchestrator="a"), required_blocks=())
    assert [warning for warning in bare.warnings if "no block is required" in warning]


@pytest.mark.req("PC1-D4")
def test_tool_configuration_is_card_then_environment_then_flags(tmp_path: Path):
    folder = write(
        tmp_path,
        card("shop", tool_config="{search_offers: {limit: 1, sort: value, store: any}}")
        | {
            "cards/settings/default.yaml": (
                "flags: {wide: false}\ntools: {search_offers: {limit: 5, region: us}}\n"
                "flag_tools: {wide: {search_offers: {limit: 12}}}\n"
            ),
            "cards/settings/production.yaml": "tools: {search_offers: {sort: price}}\n",
        },
    )

    def config(environment: str, *, wide: bool) -> dict[str, object]:
        deck = load_deck(folder, environment=environment, flags={"wide": wide})
        return deck.tool_config(deck.cards["shop"], "search_offers")

    assert config("default", wide=False) == {
        "limit": 5,
        "sort": "value",
        "store": "any",
        "region": "us",
    }
    assert config("production", wide=False) == {
        "limit": 5,
        "sort": "price",
        "store": "any",
        "region": "us",
    }
    assert config("production", wide=True) == {
        "limit": 12,
        "sort": "price",
        "store": "any",
        "region": "us",
    }


@pytest.mark.req("PC2-S5.2a")
def test_a_flag_or_a_draft_takes_a_sub_agent_out():
    cards = [
        AgentCard(id="root", description="r", model="offline", sub_agents=("a", "b", "c")),
        AgentCard(id="a", description="a", model="offline", flag="try"),
        AgentCard(id="b", description="b", model="offline", status="draft"),
        AgentCard(id="c", description="c", model="offline"),
    ]

    def subs(flags: dict[str, bool]) -> list[str]:
        deck = Deck.of(cards, required_blocks=(), flags=flags)
        assert {card.id for card in deck.active()} == {
            "root",
            *(sub.id for sub in deck.active_sub_agents(cards[0])),
        }
        return [card.id for card in deck.active_sub_agents(cards[0])]

    assert subs({}) == subs({"try": False}) == ["c"]
    assert subs({"try": True}) == ["a", "c"]


# ── warnings ───────────────────────────────────────────────────────────────────────────────────────

Advice = Callable[[dict[str, str | None]], list[str]]


@pytest.fixture
def advice(tmp_path: Path) -> Advice:
    def load(changes: dict[str, str | None]) -> list[str]:
        deck = load_deck(write(tmp_path, LONG | changes), known=TOOLS)
        return [warning.replace(f"{tmp_path}/cards/", "") for warning in deck.warnings]

    return load


LONG: dict[str, str | None] = {
    SHOP: BASE[SHOP].replace("Finds deals.", "Finds deals. " * 70),
    "cards/demo/rewards.yaml": BASE["cards/demo/rewards.yaml"].replace(
        "Counts points.", "Counts points. " * 70
    ),
}


def test_a_deck_within_every_target_has_no_warning(advice: Advice):
    assert advice({}) == []


@pytest.mark.req("PC1-NFR-3")
@pytest.mark.parametrize(
    ("characters", "warned"), [(796, True), (800, False), (1600, False), (1604, True)]
)
def test_a_routing_description_outside_200_to_400_tokens_is_a_warning(
    advice: Advice, characters: int, warned: bool
):
    found = advice({SHOP: BASE[SHOP].replace("Finds deals.", "x" * characters)})
    expected = f"demo/shop.yaml:2: description of about {characters // 4} tokens; 200 to 400 are the target"
    assert found == ([expected] if warned else [])


@pytest.mark.req("PC1-NFR-4")
@pytest.mark.parametrize(("share", "result"), [(0.24, "ok"), (0.49, "warning"), (0.51, "fault")])
def test_a_prompt_over_a_quarter_of_the_window_warns_and_over_half_is_refused(
    tmp_path: Path, share: float, result: str
):
    size = int(10_000 * share) * 4 - len("Be truthful.\n\n")
    block = f"---\nid: persona-shop\ncategory: persona\nowner: shop\n---\n{'x' * size}\n"
    model = "small:\n  provider: openai\n  context_window: 10000\n"
    folder = write(
        tmp_path, LONG | {"cards/blocks/shop/persona-shop.md": block, "cards/models.yaml": model}
    )
    place = (
        f"{folder}/shop.yaml:7: prompt of about {int(10_000 * share)} tokens takes "
        f"{share:.0%} of the window of 'small'"
    )
    if result == "fault":
        with pytest.raises(DeckError) as caught:
            load_deck(folder)
        assert caught.value.faults == (f"{place}; shorten it below 50%",)
    else:
        assert load_deck(folder).warnings == (() if result == "ok" else (place,))


@pytest.mark.req("PC1-NFR-4")
def test_the_descriptions_of_its_sub_agents_count_for_an_orchestrators_prompt():
    window = ModelSpec(key="tiny", provider="offline", context_window=1000)
    cards = [
        AgentCard(id="root", description="r", model="tiny", sub_agents=("a", "b")),
        AgentCard(id="a", description="a" * 1000, model="offline"),
        AgentCard(id="b", description="b" * 1000, model="offline"),
    ]
    with pytest.raises(
        DeckError,
        match=r"card 'root': prompt of about 5[0-9]{2} tokens takes 5[0-9]% of the window",
    ):
        Deck.of(cards, required_blocks=(), models=[window])
    wide = [card.model_copy(update={"model": "offline"}) for card in cards]
    deck = Deck.of(wide, required_blocks=(), models=[window])
    with pytest.raises(
        BindError, match=r"card 'root': prompt of about 5[0-9]{2} tokens .* choose another model"
    ):
        bind(deck, {"root": "tiny", "*": "offline"})
    assert bind(deck, {"a": "tiny", "*": "offline"}).deck is deck


@pytest.mark.req("PC1-S5.7b")
def test_two_agents_that_claim_the_same_are_a_warning(advice: Advice):
    def block(owner: str, *claims: str) -> str:
        listed = "\n".join(claims)
        head = f"---\nid: capabilities-{owner}\ncategory: capabilities\nowner: {owner}\n---\n"
        return f"{head}<can_do>\n{listed}\n</can_do>\n<cannot_do>\n- place an order\n</cannot_do>\n"

    found = advice(
        {
            SHOP: f"{LONG[SHOP]}  - capabilities-shop\n",
            "cards/demo/rewards.yaml": f"{LONG['cards/demo/rewards.yaml']}prompt_blocks: [capabilities-rewards]\n",
            "cards/blocks/shop/capabilities-shop.md": block(
                "shop", "- find offers", "- Tell the balance."
            ),
            "cards/blocks/rewards/capabilities-rewards.md": block(
                "rewards", "* tell the  balance", "- list redemptions"
            ),
        }
    )
    claim = "claims 'tell the balance', as block 'capabilities-rewards' does; let one agent own it"
    assert found == [f"blocks/shop/capabilities-shop.md:2: {claim}"]


def test_a_flag_that_is_declared_nowhere_is_a_warning(advice: Advice):
    found = advice(
        {
            "cards/settings/default.yaml": "flags:\n  wide: true\n",
            ROOT: BASE[ROOT] + "flag: wild\n",
        }
    )
    assert found == [
        "demo/root.yaml:7: flag 'wild' is declared nowhere and stays off: did you mean 'wide'?"
    ]


@pytest.mark.req("PC2-S5.1")
@pytest.mark.parametrize("word", [False, True])
def test_one_word_of_a_deck_switches_all_guards(word: bool, tmp_path: Path):
    deck = load_deck(write(tmp_path, {DECK: BASE[DECK] + f"guards: {str(word).lower()}\n"}))
    assert {value for _, value in deck.settings.guards} == {word}
