"""The stand-in that reads whole sentences: `provider: offline`, `embedder: minilm`."""

import pytest

from kit.compose.models import build_model, load_models
from kit.core.errors import SettingsError
from kit.core.model import EmbedderName
from kit.models.offline import OfflineModel
from kit.models.offline.routing import Routes, Situation, Unfit, decide
from kit.models.offline.similarity import Document
from kit.settings import HOME

DESKS = (
    Document("billing", "Answers questions about invoices, charges, refunds and payment methods."),
    Document("delivery", "Says where an order is, when it arrives, and what to do when it was damaged."),
    Document("account", "Changes passwords, e-mail addresses and sign-in settings."),
    Document("garden", "Advises on plants: watering, soil, pruning, pests."),
)  # fmt: skip
SAID_OTHERWISE = {
    "my parcel still has not shown up": "delivery",
    "the box came all broken": "delivery",
    "I never got my package": "delivery",
    "why was I billed twice": "billing",
    "someone took money from my card": "billing",
    "I cannot log in any more": "account",
    "can't remember my secret word to get in": "account",
    "the leaves of my basil are turning yellow": "garden",
}
"""Messages in other words than the cards', and whom they are for."""


def right(embedder: EmbedderName) -> int:
    count = 0
    for message, desk in SAID_OTHERWISE.items():
        match decide(Situation(message, DESKS, embedder=embedder), 8):
            case Routes(parts=(part,)):
                count += DESKS[part.tool].name == desk
            case _:
                pass
    return count


def test_it_routes_by_meaning_where_no_word_is_shared() -> None:
    assert right("minilm") == len(SAID_OTHERWISE)
    assert right("words") < len(SAID_OTHERWISE) - 1


def test_several_parts_go_to_several_desks_and_what_is_for_none_to_none() -> None:
    both = "someone took money from my card, and the box came all broken"
    decision = decide(Situation(both, DESKS, embedder="minilm"), 8)
    assert isinstance(decision, Routes)
    assert [DESKS[part.tool].name for part in decision.parts] == ["billing", "delivery"]
    for message in ("what is the capital of Peru", "how do I boil an egg"):
        assert isinstance(decide(Situation(message, DESKS, embedder="minilm"), 8), Unfit)


def test_without_the_extra_the_model_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spec = load_models(HOME / "cards" / "models.yaml")["stand-in-minilm"]
    model = build_model(spec)
    assert isinstance(model, OfflineModel) and model.embedder == "minilm"
    monkeypatch.setattr("kit.core.extra.find_spec", lambda name: None)
    with pytest.raises(SettingsError, match=r"onnxruntime.*pip install 'subagent-kit\[router\]'"):
        build_model(spec)
