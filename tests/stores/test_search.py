"""Lists are chosen by SQL over all turns, and say what going through every turn says."""

import random
from collections.abc import Callable
from typing import Any

from kit.core.context import Principal, Session
from kit.core.display.turn_parts import ENDING_WORDS, Ending, TurnParts, ending_of
from kit.core.record import TurnRecord
from kit.stores.turn_filter import TurnFilter
from kit.stores.turn_store import TurnStore
from tests.metrics.test_metrics import some_turns

ANN, BOB = (Principal(tenant_id="acme", user_id=user) for user in ("ann", "bob"))
QUESTIONS = ("Find COFFEE deals", "My receipt didn't scan", "ÄRGER with points", "100% of a_b")


async def listed(store: TurnStore) -> list[TurnRecord]:
    """Two people's turns of every kind, newest first."""
    kit, _ = await some_turns(40, seed=9)
    played, rng, turns = kit.store.turns(limit=40), random.Random(2), list[TurnRecord]()
    for n in range(200):
        turn = rng.choice(played)
        fields: dict[str, Any] = {
            "id": f"t{n}",
            "session_id": f"s{n % 2}-{n // 20}",
            "tenant_id": "acme",
            "user_id": ("ann", "bob")[n % 2],
            "message": rng.choice(QUESTIONS),
            "pattern": rng.choice(("mediated", "swarm", "a2a")),
            "model": rng.choice(("offline", "gpt-x")),
            "started_at": float(n),
            "status": rng.choice(
                ("ok", "ok", "ok", "failed", "deadline", "cancelled", "paused", "interrupted")
            ),
        }
        if n % 50 == 0:  # every one of those it asked
            parts = TurnParts(failed=2, over_cap=("shop",) if n % 100 else ())
            fields["measures"] = turn.measures.model_copy(update={"parts": parts})
        turns.append(turn.model_copy(update=fields))
        store.end_turn(turns[-1], [], [])
    store.begin_turn(
        turns[0].model_copy(
            update={"id": "r", "status": "running", "seconds": None, "started_at": 200.0}
        )
    )
    return [store.turns(limit=1)[0], *reversed(turns)]


def is_short_of_data(turn: TurnRecord) -> bool:
    return any(agent.axis == "data" or agent.data_faults for agent in turn.measures.agents)


def ending(turn: TurnRecord) -> Ending:
    return ending_of(turn.status, turn.measures.parts)


FILTERS: list[tuple[TurnFilter, Callable[[TurnRecord], bool]]] = [
    (TurnFilter(), lambda turn: True),
    (TurnFilter(text="coffee find"), lambda turn: turn.message == QUESTIONS[0]),
    (TurnFilter(text="ärger"), lambda turn: turn.message == QUESTIONS[2]),
    (TurnFilter(text="0% A_B"), lambda turn: turn.message == QUESTIONS[3]),
    (TurnFilter(text="a%b"), lambda turn: False),
    (TurnFilter(patterns=("swarm", "a2a")), lambda turn: turn.pattern != "mediated"),
    (TurnFilter(models=("gpt-x",)), lambda turn: turn.model == "gpt-x"),
    (TurnFilter(agents=("shop", "play")), lambda turn: bool({"shop", "play"} & {*turn.invoked})),
    (TurnFilter(session="s0-3"), lambda turn: turn.session_id == "s0-3"),
    (TurnFilter(at_least=2.0), lambda turn: (turn.seconds or 0.0) >= 2.0),
    *(
        (TurnFilter(endings=(one,)), lambda turn, one=one: ending(turn) == one)
        for one in ENDING_WORDS
    ),
    (TurnFilter(axes=("cap",)), lambda turn: turn.cap_behavior == "over"),
    (TurnFilter(axes=("data",)), is_short_of_data),
    (
        TurnFilter(endings=("partly", "nothing"), axes=("cap",), patterns=("swarm",)),
        lambda turn: (
            ending(turn) in ("partly", "nothing")
            and turn.cap_behavior == "over"
            and turn.pattern == "swarm"
        ),
    ),
]


async def test_lists_say_what_going_through_all_turns_says_and_nobody_elses(
    store: TurnStore,
) -> None:
    turns = await listed(store)
    mine = [turn for turn in turns if turn.user_id == "ann"]
    check_filters(store, mine)
    choices = store.choices(ANN)
    assert (choices.total, choices.patterns, choices.models) == (
        len(mine),
        ("a2a", "mediated", "swarm"),
        ("gpt-x", "offline"),
    )
    took = sorted(turn.seconds for turn in mine if turn.seconds is not None)
    assert choices.slow == took[-(-len(took) * 95 // 100) - 1], "the slowest are one in twenty"
    assert store.choices(Principal(tenant_id="acme", user_id="eve")) == (0, (), (), 0.0)
    assert store.search(Principal(tenant_id="globex", user_id="ann"), TurnFilter()).total == 0
    for session in ("again:t1:x", "job:digest:y"):
        fields = {"id": session, "session_id": session, "user_id": "ann"}
        store.end_turn(turns[1].model_copy(update=fields), [], [])
    store.open_session(Session(id="silent", principal=ANN))
    rows, total = store.conversations(ANN, limit=4, offset=1)
    sessions = list(dict.fromkeys(turn.session_id for turn in mine))
    assert total == len(sessions) and [row.id for row in rows] == sessions[1:5]
    for row in rows:
        own = [turn for turn in mine if turn.session_id == row.id]
        assert row == (row.id, own[-1].message, len(own), own[0].started_at)


def check_filters(store: TurnStore, turns: list[TurnRecord]) -> None:
    found: list[int] = []
    for by, passes in FILTERS:
        mine = [turn for turn in turns if passes(turn)]
        page = store.search(ANN, by, limit=10, offset=5)
        ids = [turn.id for turn in page.turns]
        assert (page.total, ids) == (len(mine), [turn.id for turn in mine[5:15]]), by
        assert page.longest == max((turn.seconds or 0.0 for turn in mine), default=0.0)
        found.append(len(mine))
    assert found.count(0) == 1, "each but the one without a match is put to the test"
