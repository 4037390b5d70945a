"""Who is asking decides what is read: two people under one session id, one page, one server, see their own."""

from pathlib import Path

import pytest
from langchain_core.messages import BaseMessage

from kit.core.context import Principal, Session
from kit.models.scripted import Line, ScriptedModel
from kit.runtime.handle import Turn
from kit.settings import Settings
from kit.wire import open_kit

ANN, EVE = Principal(tenant_id="acme", user_id="ann"), Principal(tenant_id="evil", user_id="eve")


@pytest.mark.req("S-2")
async def test_two_tenants_with_sessions_of_one_id_hold_conversations_that_never_meet(
    tmp_path: Path,
):
    prompts: dict[str, list[str]] = {"acme": [], "evil": []}

    def answer(messages: list[BaseMessage]) -> Line:
        words = "\n".join(str(message.content) for message in messages[1:])
        tenant = "acme" if "acme" in str(messages[-1].content) else "evil"
        prompts[tenant].append(words)
        return Line(f"Noted for {tenant}.", delay=0.05)

    settings = Settings(store=str(tmp_path / "kit.db"), model="offline", pace=0.0)
    async with open_kit(settings, models={"*": ScriptedModel(answer)}) as kit:
        sessions = [Session(id="same", principal=who) for who in (ANN, EVE)]
        for number in range(3):
            turns: list[Turn] = []
            for session in sessions:
                tenant = session.principal.tenant_id
                turns.append(kit.ask(f"{tenant} says {number}", session))
            assert [(await turn).saved for turn in turns] == [True, True]
        for session, other in (sessions, reversed(sessions)):
            own = session.principal.tenant_id
            foreign = other.principal.tenant_id
            lines = [line.text for line in kit.store.history(session.key)]
            assert [f"{own} says {number}" for number in range(3)] == lines[::2]
            assert len(lines) == 6 and foreign not in "".join(lines)
            assert f"{own} says 1" in prompts[own][-1] and foreign not in "".join(prompts[own])
            assert kit.store.session(session.key) == session.replace(flags={})
            window = await kit.store.open_documents().sessions.read(session.principal, "same")
            assert window is not None and [line.content for line in window.messages] == lines


@pytest.mark.req("S-2")
def test_no_two_principals_are_spelled_alike():
    one, other = (
        Principal(tenant_id="acme/eu", user_id="bob"),
        Principal(tenant_id="acme", user_id="eu/bob"),
    )
    assert str(one) != str(other) and str(ANN) == "acme/ann"
    assert (
        len(
            {
                str(Principal(tenant_id=t, user_id=u))
                for t in ("a", "a/", "a%2F")
                for u in ("b", "/b", "%2Fb")
            }
        )
        == 9
    )
