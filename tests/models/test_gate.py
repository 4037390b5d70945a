"""One gate a provider's key: no minute holds more calls or tokens than it may, and a pause holds for everybody."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest

from kit.core.bodies.call import ModelEnded, ModelPause
from kit.core.card import Policy
from kit.core.model import ModelSpec, RateLimits
from kit.models.access import ModelAccess
from kit.models.gate import JITTER, MINUTE, gate_of
from kit.models.scripted import Line, ScriptedModel
from kit.runtime.handle import Reply
from kit.runtime.team import bind
from kit.runtime.turn import run_turn
from kit.stores.sqlite import SqliteStore
from tests.kits import ALICE, SmallKit, asks, bodies, routing, small_deck

pytestmark = pytest.mark.req("SAT-24")

PATIENT: dict[str, Any] = {"turn_budget_ms": 3_600_000, "model_call_budget_ms": 3_600_000}


class TooMany(Exception):
    """What a provider's client raises when it was asked too much."""

    status_code = 429

    def __init__(self, seconds: float):
        super().__init__("too many")
        self.response = SimpleNamespace(headers={"retry-after": str(seconds)}, status_code=429)


@dataclass
class Provider:
    """Two models under one key that note when they are called."""

    limits: RateLimits
    url: str
    refuses: Sequence[int] = ()
    """Which calls are refused, with a pause of 20 s."""
    times: list[float] = field(default_factory=list[float])

    def kit(self, **settings: Any) -> SmallKit:
        def called(line: Any) -> Any:
            def reply(messages: Any) -> Any:
                self.times.append(asyncio.get_running_loop().time())
                if len(self.times) in self.refuses:
                    return Line(error=TooMany(20))
                return line(messages) if callable(line) else line

            return reply

        models = {
            "orchestrator": ("lead", called(routing(asks("a", "b")))),
            "a": ("sub", called("I am a.")),
            "b": ("sub", called("I am b.")),
        }
        specs = {
            name: ModelSpec(key=key, provider="openai", base_url=self.url, limits=self.limits)
            for name, (key, _) in models.items()
        }
        given = {name: (ScriptedModel(script), specs[name]) for name, (_, script) in models.items()}
        deck = small_deck(
            ["a", "b"], defaults=Policy(time_budget_ms=3_600_000), **{**PATIENT, **settings}
        )
        return SmallKit(bind(deck, given), SqliteStore(":memory:"))


async def ask_all(kit: SmallKit, turns: int) -> list[Reply]:
    sessions = [ALICE.model_copy(update={"id": f"e{n}"}) for n in range(turns)]
    return list(await asyncio.gather(*(run_turn("a and b?", session, kit) for session in sessions)))


def most_in_a_minute(times: Sequence[float]) -> int:
    return max(sum(at <= other < at + MINUTE for other in times) for at in times)


async def test_no_minute_holds_more_calls_than_the_key_allows_over_all_agents_of_all_turns():
    provider = Provider(RateLimits(requests=6), "http://one.example/v1")
    kits = [provider.kit(), provider.kit()]
    replies = [
        reply
        for batch in await asyncio.gather(*(ask_all(kit, 3) for kit in kits))
        for reply in batch
    ]
    assert all(
        reply.status == "ok" and not any(o.kind == "failure" for o in reply.outcomes)
        for reply in replies
    )
    assert len(provider.times) == 30 and most_in_a_minute(provider.times) == 6
    assert provider.times[-1] - provider.times[0] == pytest.approx(240, abs=1), (
        "and no call waits longer than it must"
    )


async def test_tokens_a_minute_are_kept_with_what_replies_really_cost():
    gate = gate_of(
        ModelSpec(
            key="t",
            provider="openai",
            base_url="http://two.example/v1",
            limits=RateLimits(tokens=1000),
        ),
        ModelAccess(),
    )
    assert gate is not None
    clock, times = asyncio.get_running_loop().time, list[float]()
    began = clock()
    for _ in range(4):
        await gate.enter(300)
        gate.spent(200)
        times.append(clock() - began)
    assert times == [0, 0, MINUTE, MINUTE]
    await gate.enter(5000)
    assert clock() - began == 2 * MINUTE, (
        "more than a minute holds goes alone, and does not wait for ever"
    )


async def test_a_pause_that_one_call_was_asked_for_holds_for_everybody_and_a_little_longer():
    provider = Provider(RateLimits(), "http://three.example/v1", refuses=[1])
    first, second = await ask_all(provider.kit(), 1), await ask_all(provider.kit(), 2)
    assert first[0].status != "ok" and [reply.status for reply in second] == ["ok", "ok"]
    pause = provider.times[1] - provider.times[0]
    assert 20 <= pause <= 20 * (1 + JITTER)


async def test_a_call_that_would_wait_longer_than_anybody_does_is_lost_to_the_limit_at_once():
    provider = Provider(RateLimits(requests=5), "http://four.example/v1")
    await ask_all(provider.kit(), 1)
    began = asyncio.get_running_loop().time()
    (reply,) = await ask_all(provider.kit(model_call_budget_ms=10_000), 1)
    ends = bodies(reply, ModelEnded)
    assert ends[0].error_class == "limit" and "let no call through for another" in str(
        ends[0].error
    )
    assert asyncio.get_running_loop().time() - began < 1 and len(provider.times) == 5


async def test_other_keys_and_simulated_models_have_gates_of_their_own_or_none():
    spec = ModelSpec(
        key="x", provider="openai", base_url="http://five.example/v1", limits=RateLimits(requests=1)
    )
    gate = gate_of(spec, ModelAccess())
    assert gate is not None and gate is gate_of(spec.model_copy(update={"key": "y"}), ModelAccess())
    assert gate is not gate_of(
        spec.model_copy(update={"api_key_env": "OTHER_API_KEY"}), ModelAccess()
    )
    assert gate_of(ModelSpec(key="offline", provider="offline"), ModelAccess()) is None


@pytest.mark.parametrize(("requests", "pauses"), [(None, 0), (2, 2)])
async def test_a_call_that_no_limit_held_up_has_not_waited_however_slow_the_machine_is(
    requests: int | None, pauses: int, monkeypatch: pytest.MonkeyPatch
):
    kit = Provider(RateLimits(requests=requests), f"http://slow-{requests}.example/v1").kit()
    loop = asyncio.get_running_loop()
    time_of_loop = loop.time
    looks = count()
    # Every look at the clock finds it 50 ms further, as on a machine that others keep busy.
    monkeypatch.setattr(loop, "time", lambda: time_of_loop() + 0.05 * next(looks))
    reply = await run_turn("a and b?", ALICE, kit)
    monkeypatch.undo()
    assert reply.status == "ok"
    assert len(bodies(reply.events, ModelPause)) == pauses
