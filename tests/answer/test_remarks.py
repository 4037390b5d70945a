"""A remark that asks for nothing, beside a request, keeps nobody from answering the request."""

import pytest

from kit.bench.case import read_cases
from kit.core.outcome import Answer
from kit.settings import HOME, Settings
from kit.wire import open_kit

OFFLINE = Settings(store=":memory:", model="offline", pace=0.0)
CASES = list(read_cases(HOME / "data" / "cases" / "remarks.jsonl"))
ANSWERED = 57
"""Of sixty messages with a remark beside their request, by somebody who knew neither code nor cards."""
ALARMS = 1


async def test_requests_with_remarks_beside_them_are_answered():
    answered = 0
    alarms = 0
    async with open_kit(OFFLINE) as kit:
        for number, case in enumerate(CASES):
            turn = case.turns[-1]
            reply = await kit.ask(turn.user, kit.session(f"s{number}"))
            agents = {outcome.agent for outcome in reply.outcomes if isinstance(outcome, Answer)}
            # where somebody was not asked, saying so is no false alarm
            if agents >= set(turn.expected):
                answered += 1
                alarms += reply.routing.left_out.count > 0
    assert len(CASES) == 60
    assert answered >= ANSWERED
    assert alarms <= ALARMS


@pytest.mark.parametrize(
    "message",
    [
        "Between you and me, how many points until I can have that Nike card? And the Cascade offer, does it want "
        "one tub or two?",
        "so tired today ugh. end date for the Lysol offer? which games have under 10 levels?",
        "Long bus ride ahead lol. Suggest a chill game for me, and when i get there i'll want a good bakery in Rivermont",
    ],
)
async def test_what_is_worded_like_no_request_is_owed_by_nobody(message: str):
    async with open_kit(OFFLINE) as kit:
        reply = await kit.ask(message, kit.session("s"))
    assert len(reply.outcomes) == 2 and not reply.routing.left_out.count
