"""A deck on disk whose card `rewards` has a new version that shares its sessions."""

from pathlib import Path

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import BaseMessage

from kit.compose.canary import place_of
from kit.core.context import SessionKey
from kit.models.scripted import Line, ScriptedModel
from kit.settings import Settings
from tests.kits import asks, leading

BALANCE = "how many points do I have"
OLD_ANSWER = "You have 4,975 points."
NEW_ANSWER = "You have 4,975 points, enough for a gift card."
JUDGED = "eval: {judge: rule, rubric: response_quality}\n"
FILES = {
    "desk/deck.yaml": "orchestrator: lead\nrequired_blocks: []\nguards: false\n",
    "desk/lead.yaml": f"id: lead\ndescription: Routes.\nmodel: offline\nsub_agents: [rewards, shop]\n{JUDGED}",
    "desk/shop.yaml": "id: shop\ndescription: Finds offers.\nmodel: offline\n",
    "desk/rewards.yaml": (
        f"id: rewards\ndescription: Knows the points.\nmodel: offline\nprompt_blocks: [plain]\n{JUDGED}"
    ),
    "desk/rewards.next.yaml": (
        "id: rewards\ndescription: Knows the points and gifts.\nmodel: offline\n"
        f'prompt_blocks: [rich]\nversion: "2"\n{JUDGED}'
    ),
    "blocks/rewards/plain.md": "---\nid: plain\ncategory: persona\nowner: rewards\n---\nSay the balance.\n",
    "blocks/rewards/rich.md": "---\nid: rich\ncategory: persona\nowner: rewards\n---\nSay the gift too.\n",
    "models.yaml": "{}\n",
}
HALF = FILES["desk/deck.yaml"] + "canary: {rewards: {share: 0.5}}\n"
"""deck.yaml where every other session has the new version of rewards."""


def write_deck(folder: Path, **changes: str) -> Path:
    """Writes the deck below a folder, and returns its own; `changes` are texts by file name without its ending."""
    for name, text in FILES.items():
        path = folder / "cards" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        key = path.name.removesuffix(path.suffix).replace(".", "_")
        path.write_text(changes.get(key, text))
    return folder / "cards" / "desk"


def gaining_a_gift(grant: str) -> str:
    """The new version of rewards where it gains the tool `gift`, granted by these fields."""
    modes = ("returns_nothing", "fails")
    cases = ", ".join(f"{{tool: gift, mode: {mode}, ask: a gift, never: [sent]}}" for mode in modes)
    return FILES["desk/rewards.next.yaml"].replace(
        "response_quality}",
        f"response_quality, tool_cases: [{cases}]}}\ntools: [gift]\n"
        f"tool_grants: {{gift: {{{grant}}}}}",
    )


def settings(deck: Path, store: str = ":memory:") -> Settings:
    return Settings(deck=deck, store=store, pace=0.0, today="2026-11-01")


def models(old: str = OLD_ANSWER, new: str = NEW_ANSWER) -> dict[str, BaseChatModel]:
    """A lead that asks `rewards` and says what it says, and a `rewards` that answers as its prompt has it."""

    def answer(messages: list[BaseMessage]) -> Line:
        if "Say the gift too." in str(messages[0].content):
            return Line(new)
        return Line(old)

    lead = leading(asks("rewards", query=BALANCE, text=""))
    return {"lead": lead, "rewards": ScriptedModel(answer), "*": ScriptedModel(answer)}


def sessions_below(share: float, count: int) -> list[str]:
    """Ids of sessions of the tenant `acme` that stand below a share of the card `rewards`."""
    ids = (f"s{number}" for number in range(1_000_000))
    found = (name for name in ids if place_of(SessionKey("acme", name), "rewards") < share)
    return [next(found) for _ in range(count)]


def sessions_above(share: float, count: int) -> list[str]:
    ids = (f"s{number}" for number in range(1_000_000))
    found = (name for name in ids if place_of(SessionKey("acme", name), "rewards") >= share)
    return [next(found) for _ in range(count)]
