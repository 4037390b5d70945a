"""Souls have an effect: what a tenant and a user wish of their assistant is in the prompts, each where it belongs."""

import asyncio
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from kit import Kit, open_kit
from kit.compose.deck import Deck
from kit.compose.parts import Block
from kit.core.bodies.call import AgentStarted
from kit.core.card import AgentCard
from kit.core.documents.document import Persona, Soul
from kit.core.errors import CassetteError
from kit.models.scripted import Line, ScriptedModel
from kit.patterns import stages
from kit.stores.opening import open_store
from tests.forks import exit_code
from tests.kits import OFFLINE, asks, stitched
from tests.runtime.test_pause import Desk, paused

ACME = Persona(
    name="Ada", system_prompt="You work for Acme.\nYou know its shops.", tone="dry", language="es"
)
POLICIES = {"rivals": "Never name one.", "returns": "Thirty days."}
WORDS = (
    "You are called Ada.\nYou work for Acme.\nYou know its shops.\nTone: dry\nAnswer in this language: es\n"
    "Policy rivals: Never name one.\nPolicy returns: Thirty days."
)


def a_soul(
    tenant: str, user: str | None = None, policies: Any = None, persona: Persona | None = None
) -> Soul:
    key = f"{tenant}/{user}"
    return Soul(
        id=key,
        tenant_id=tenant,
        user_id=user,
        persona=persona or Persona(),
        policies=policies or {},
        updated_at=1.0,
    )


def a_deck() -> Deck:
    rules = Block(id="rules", category="safety", owner="platform", text="Never lie.")
    answer = {
        "type": "object",
        "properties": {"points": {"type": "integer"}},
        "required": ["points"],
    }
    cards = [
        AgentCard(id="lead", description="Leads.", model="offline", sub_agents=("shop", "counter")),
        AgentCard(id="shop", description="Sells.", model="offline"),
        AgentCard.model_validate(
            {
                "id": "counter",
                "description": "Counts.",
                "model": "offline",
                "handoff": {"output_schema": answer},
            }
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
    async with open_kit(OFFLINE, deck=a_deck(), models=models) as kit:
        store = kit.store.open_documents().souls
        for soul in souls:
            await store.put(soul)
        for number, (tenant, user) in enumerate(who):
            session = kit.session(f"s{number}", tenant, user)
            reply = await kit.ask("tea, and my points", session)
            systems = {name: str(model.seen[-1][0].content) for name, model in models.items()}
            cohorts = {
                e.body.agent: e.body.cohort
                for e in reply.events
                if isinstance(e.body, AgentStarted)
            }
            visits.append((systems, cohorts, kit.store.session(session.key)))
    return visits


def parts(system: str) -> tuple[str, str]:
    prefix, date, suffix = system.partition("\n\nDate: ")
    return prefix, date + suffix


@pytest.mark.req("AS-17")
async def test_a_tenants_persona_is_in_the_prefix_its_users_share_and_a_users_in_the_suffix() -> (
    None
):
    wish = Persona(tone="warm", system_prompt="Call me\nDr. Ann.", language="de-DE")
    souls = [a_soul("acme", policies=POLICIES, persona=ACME), a_soul("acme", "ann", persona=wish)]
    ann, bob, eve = await prompts([("acme", "ann"), ("acme", "bob"), ("other", "ann")], souls)
    for agent in ("lead", "shop"):
        (prefix, own), (other, plain), (foreign, _) = (
            parts(visit[0][agent]) for visit in (ann, bob, eve)
        )
        assert (
            prefix == other and prefix.startswith("Never lie.\n\n" + WORDS) and "Ada" not in foreign
        )
        assert (
            "This user wishes: Call me Dr. Ann. Tone: warm" in own
            and "wishes" not in plain
            and "Ann." not in prefix
        )
    assert (
        ann[1] == bob[1] and ann[1]["shop"] != eve[1]["shop"]
    )  # the cohort's key has the persona in it
    counter = ann[0]["counter"]
    assert "Ada" not in counter and "Never lie." in counter, "its answer is data"
    # The language is that of the fixed sentences, the user's first.
    assert [visit[2].locale for visit in (ann, bob, eve)] == ["de-DE", "es", "en-US"]
    assert all(f"Locale: {visit[2].locale}" in visit[0]["lead"] for visit in (ann, bob, eve))


@pytest.mark.req("AS-17")
async def test_a_soul_leaves_the_persona_that_a_session_has_of_its_own():
    lead = ScriptedModel(Line("Hello."))
    models = {"lead": lead, "*": ScriptedModel()}
    async with open_kit(OFFLINE, deck=a_deck(), models=models) as kit:
        souls = kit.store.open_documents().souls
        await souls.put(a_soul("acme", persona=Persona(tone="dry")))
        await souls.put(a_soul("acme", "ann", persona=Persona(tone="warm")))
        session = kit.session("s1", "acme", "ann")
        await kit.ask("hello", session.replace(persona="Be brief.", tenant_persona="Be exact."))
    system = str(lead.seen[-1][0].content)
    assert "This user wishes: Be brief." in system and "Tone: warm" not in system
    assert "Be exact." in system and "Tone: dry" not in system


def write_soul(path: str, soul: Soul | None) -> None:
    """Writes a soul of the tenant, or takes it away: work of a process of its own."""
    with closing(open_store(path)) as store:
        souls = store.open_documents().souls
        asyncio.run(souls.put(soul) if soul is not None else souls.remove("acme", None))


@pytest.mark.req("AS-17")
@pytest.mark.realtime
async def test_a_soul_that_another_process_wrote_acts_within_a_second(tmp_path: Path) -> None:
    path, lead = str(tmp_path / "kit.db"), ScriptedModel(lambda _: Line("Hello."))
    deck, models = a_deck(), {"lead": lead, "*": ScriptedModel()}
    async with open_kit(OFFLINE.with_(store=path), deck=deck, models=models) as kit:
        soul = a_soul("acme", persona=Persona(tone="dry"))
        assert await asyncio.to_thread(exit_code, write_soul, path, soul) == 0
        for _ in range(100):
            if kit.store.has_souls:
                break
            await asyncio.sleep(0.02)
        await kit.ask("hello", kit.session("s1", "acme", "ann"))
        assert "Tone: dry" in str(lead.seen[-1][0].content)
        assert await asyncio.to_thread(exit_code, write_soul, path, None) == 0
        await kit.ask("hello", kit.session("s1", "acme", "ann"))
        assert "Tone: dry" not in str(lead.seen[-1][0].content)


async def going_on(folder: Path, *changed: Soul) -> list[str]:
    """The prompts of a turn that paused with two souls and goes on after some of them changed."""
    world, seen = Desk(folder), list[str]()

    async def ask(kit: Kit, *souls: Soul) -> None:
        for soul in souls:
            await kit.store.open_documents().souls.put(soul)

    async with world.opened() as kit:
        await ask(
            kit,
            a_soul("local", persona=ACME),
            a_soul("local", "visitor", persona=Persona(tone="warm", language="de-DE")),
        )
        reply = await paused(kit)
        await ask(kit, *changed)
        ended = await kit.resume(reply.turn_id, True)
        again = await kit.fork(
            ended.turn_id, next(s.id for s in ended.trace.spans if s.name.startswith("compose"))
        )
    for one in (ended, again):
        seen += [
            event.body.system
            for event in one.events
            if event.body.kind == "model_started" and len(event.body.system) > 1
        ]
    return seen


@pytest.mark.req("AS-17")
async def test_a_turn_that_goes_on_or_is_forked_has_the_persona_it_began_with(
    tmp_path: Path,
) -> None:
    systems = await going_on(
        tmp_path, a_soul("local", "visitor", persona=Persona(tone="cold", language="fr"))
    )
    assert systems
    for system in systems:
        assert (
            "This user wishes: Tone: warm" in system
            and "Locale: de-DE" in system
            and "cold" not in system
        )


@pytest.mark.req("AS-17")
async def test_a_turn_whose_tenants_persona_has_changed_since_does_not_go_on(
    tmp_path: Path,
) -> None:
    with pytest.raises(CassetteError, match="the card of"):
        await going_on(tmp_path, a_soul("local", persona=Persona(tone="cold")))


async def test_no_more_teams_with_a_persona_are_kept_than_a_few_dozen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stages, "TEAMS", 3)
    async with open_kit(
        OFFLINE, deck=a_deck(), models=ScriptedModel(lambda _: Line("Hello."))
    ) as kit:
        plain = len(kit.stages.bound)
        for text in ("1", "2", "3", "1", "4"):
            kit.stages.team(kit.pattern, persona=text)
        assert [key[3] for key in kit.stages.bound][-3:] == ["3", "1", "4"] and len(
            kit.stages.bound
        ) == plain + 3
