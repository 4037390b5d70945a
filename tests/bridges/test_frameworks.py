"""Agents of three frameworks, as their own tutorials build them, as sub-agents of a deck."""

import asyncio
from pathlib import Path
from pkgutil import resolve_name

import pytest

from kit.bridges.part import Bridge, Called, Calling, Part, Piece, Question, Reported, Spent
from kit.bridges.recognise import bridge_of
from kit.core.bodies.speech import Text
from kit.core.context import Principal
from kit.core.outcome import total
from tests.bridges.decks import kit_over, write_deck
from tests.kits import bodies, failures, nothing_runs

pytestmark = pytest.mark.realtime
RUNS = {
    "flights": "tests.bridges.agents.flights:graph",
    "hotels": "tests.bridges.agents.hotels:hotel_agent",
    "weather": "tests.bridges.agents.weather:weather_agent",
}
ANSWERS = {
    "flights": "A flight to Leeds leaves at noon, 120 euros. For alice.",
    "hotels": "In Leeds: the Grand has a room for alice.",
    "weather": "For tomorrow: sunny in Leeds, alice.",
}
TOOLS = {"flights": "find_flight", "hotels": "find_room", "weather": "get_weather"}


async def parts_of(bridge: Bridge, user: str = "alice") -> list[Part]:
    question = Question("To Leeds?", Principal(tenant_id="acme", user_id=user))
    return [part async for part in bridge.ask(question)]


@pytest.mark.parametrize("name", list(RUNS))
async def test_a_bridge_gives_text_as_it_comes_calls_tokens_and_the_whole_answer(name: str):
    parts = await parts_of(bridge_of(resolve_name(RUNS[name]), name))
    assert parts[-1] == Reported(ANSWERS[name])
    [calling] = [part for part in parts if isinstance(part, Calling)]
    [called] = [part for part in parts if isinstance(part, Called)]
    assert (calling.name, calling.arguments) == (TOOLS[name], {"city": "Leeds"})
    assert called.call_id == calling.call_id and called.fault is None
    assert called.result is not None and "alice" in called.result
    pieces = [part.text for part in parts[parts.index(called) :] if isinstance(part, Piece)]
    assert len(pieces) > 1 and "".join(pieces).strip() == ANSWERS[name]
    usage = total([part.usage for part in parts if isinstance(part, Spent)])
    assert usage.model_calls == 2 and usage.input_tokens > 0 and usage.output_tokens > 0
    assert usage.cost is None and usage.untold_tokens == 0
    assert name != "weather" or (usage.input_tokens, usage.cached_tokens) == (100, 20)


async def test_where_sub_agents_speak_themselves_their_words_are_read_as_they_come(
    tmp_path: Path,
):
    async with kit_over(write_deck(tmp_path, RUNS), "hotels") as kit:
        reply = await kit.ask("Please help me.", kit.session("s", "acme", "alice"), "direct")
    assert reply.text == ANSWERS["hotels"]
    assert len([body for body in bodies(reply, Text) if body.channel == "answer"]) > 1


@pytest.mark.parametrize("name", list(RUNS))
async def test_two_principals_at_once_are_never_mixed(name: str):
    bridge = bridge_of(resolve_name(RUNS[name]), name)
    users = [f"user{number}" for number in range(8)]
    answers = await asyncio.gather(*(parts_of(bridge, user) for user in users))
    for user, parts in zip(users, answers, strict=True):
        assert parts[-1] == Reported(ANSWERS[name].replace("alice", user))


async def test_what_a_framework_raises_is_a_failure_of_that_agent_alone(tmp_path: Path):
    async with kit_over(write_deck(tmp_path, RUNS), *RUNS) as kit:
        reply = await kit.ask("Fly to Atlantis.", kit.session("s", "acme", "alice"))
    [failure] = failures(reply)
    assert (failure.agent, failure.reason) == ("flights", "exception")
    assert "zx-" in failure.detail and "zx-" not in reply.text
    assert failure.usage.input_tokens > 0, "what it had spent by then is counted"
    assert failure.usage.untold_tokens == 1, "and that more may be missing"
    assert ANSWERS["hotels"] in reply.text and ANSWERS["weather"] in reply.text
    assert nothing_runs()
