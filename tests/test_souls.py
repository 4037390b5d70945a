"""Souls have an effect: what a tenant and a user wish of their assistant is in the prompts, each where it belongs."""

from typing import Any

import pytest

from kit import Settings, open_kit
from kit.compose.deck import Deck
from kit.compose.parts import Block
from kit.core.card import AgentCard
from kit.core.event import AgentStarted, Completed
from kit.models.scripted import Line, ScriptedModel
from kit.stores.documents.document import Persona, Soul
from kit.stores.documents.souls import with_souls, words_of
from tests.kits import asks, stitched

SETTINGS = Settings(store=":memory:", pace=0.0, today="2026-11-01", model="offline")
ACME = Persona(name="Ada", system_prompt="You work for Acme.\nYou know its shops.", tone="dry", language="es")
POLICIES = {"rivals": "Never name one.", "returns": "Thirty days."}
WORDS = (
    "You are called Ada.\nYou work for Acme.\nYou know its shops.\nTone: dry\nAnswer in this language: es\n"
    "Policy rivals: Never name one.\nPolicy returns: Thirty days."
)


def a_soul(tenant: str, user: str | None = None, policies: Any = None, persona: Persona | None = None) -> Soul:
    key = f"{tenant}/{user}"
    return Soul(id=key, tenant_id=tenant, user_id=user, persona=persona or Persona(), policies=policies or {}, updated_at=1.0)


def a_deck() -> Deck:
    rules = Block(id="rules", category="safety", owner="platform", text="Never lie.")
    answer = {"type": "object", "properties": {"points": {"type": "integer"}}, "required": ["points"]}
    cards = [
        AgentCard(id="lead", description="Leads.", model="offline", sub_agents=("shop", "counter")),
        AgentCard(id="shop", description="Sells.", model="offline"),
        AgentCard.model_validate(
            {"id": "counter", "description": "Counts.", "model": "offline", "handoff": {"output_schema": answer}}
        ),
    ]
    return Deck.of(cards, [rules], required_blocks=("rules",))


async def prompts(who: list[tuple[str, str]], souls: list[Soul]) -> list[Any]:
    """For each visitor: the system prompts by agent, the cohorts by agent, the reply."""
    models = {
        "lead": ScriptedModel(*[asks("shop", "counter"), stitched] * len(who)),
        "shop": ScriptedModel(*[Line("Tea.")] * len(who)),
        "counter": ScriptedModel(*[Line('{"points": 3}')] * len(who)),
    }
    visits = list[Any]()
    async with open_kit(SETTINGS, deck=a_deck(), models=models) as kit:
        store = kit.store.open_documents().souls
        for soul in souls:
            await store.put(soul)
        for number, (tenant, user) in enumerate(who):
            session = await with_souls(kit.session(f"s{number}", tenant, user), store)
            reply = await kit.ask("tea, and my points", session)
            systems = {name: str(model.seen[-1][0].content) for name, model in models.items()}
            cohorts = {e.body.agent: e.body.cohort for e in reply.events if isinstance(e.body, AgentStarted)}
            visits.append((systems, cohorts, session, kit.store.turn(reply.turn_id)))
            assert any(isinstance(event.body, Completed) for event in reply.events)
        assert len({key[3] for key in kit.stages.bound}) <= len(souls) + 1
    return visits


def parts(system: str) -> tuple[str, str]:
    prefix, date, suffix = system.partition("\n\nDate: ")
    return prefix, date + suffix


@pytest.mark.req("AS-17")
async def test_a_tenants_persona_is_in_the_prefix_its_users_share_and_a_users_in_the_suffix() -> None:
    wish = Persona(tone="warm", system_prompt="Call me\nDr. Ann.")
    souls = [a_soul("acme", policies=POLICIES, persona=ACME), a_soul("acme", "ann", persona=wish)]
    ann, bob, eve = await prompts([("acme", "ann"), ("acme", "bob"), ("other", "ann")], souls)
    for agent in ("lead", "shop"):
        (prefix, own), (other, plain), (foreign, _) = (parts(visit[0][agent]) for visit in (ann, bob, eve))
        assert prefix == other and prefix.startswith("Never lie.\n\n" + WORDS) and "Ada" not in foreign
        assert "This user wishes: Call me Dr. Ann. Tone: warm" in own and "wishes" not in plain and "Ann." not in prefix
    assert ann[1] == bob[1] and ann[1]["shop"] != eve[1]["shop"]  # the cohort's key has the persona in it


@pytest.mark.req("AS-17")
async def test_an_agent_whose_answer_is_data_is_told_of_no_persona() -> None:
    ((systems, _, _, _),) = await prompts([("acme", "ann")], [a_soul("acme", persona=ACME), a_soul("acme", "ann", persona=ACME)])
    assert "Ada" not in systems["counter"] and "Never lie." in systems["counter"]


@pytest.mark.req("AS-17")
async def test_the_language_of_a_soul_is_that_of_the_fixed_sentences_the_users_first() -> None:
    german = Persona(language="de-DE")
    souls = [a_soul("acme", persona=ACME), a_soul("acme", "ann", persona=german)]
    visits = await prompts([("acme", "ann"), ("acme", "bob"), ("other", "bob")], souls)
    assert [visit[2].locale for visit in visits] == ["de-DE", "es", "en-US"]
    assert all(f"Locale: {visit[2].locale}" in visit[0]["lead"] for visit in visits)


async def test_without_souls_nothing_is_different() -> None:
    ((systems, _, session, _),) = await prompts([("acme", "ann")], [])
    assert (session.persona, session.tenant_persona, words_of(None)) == ("", "", "") and "wishes" not in systems["lead"]
