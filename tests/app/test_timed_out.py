"""Under an agent whose time ran out a trace says what it went to and what helps, read by
Streamlit's own test driver."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from kit.core.context import Session
from kit.core.fault import Fault
from kit.core.fault_injection import inject_faults
from kit.core.timeout import REMEDIES
from kit.models.scripted import Line, ScriptedModel
from kit.runtime.clock import run_virtual
from kit.runtime.turn import Reply, run_turn
from kit.stores.sqlite import SqliteStore
from tests.app.logs import WHO
from tests.app.rooms import app_over, room, shown
from tests.kits import asks, small_kit, stitched


def timed_out(path: Path, faults: Sequence[Fault] = ()) -> Reply:
    """A stored turn in which the model of one of two agents takes longer than the agent has."""

    async def turn() -> Reply:
        slow = ScriptedModel(lambda _: Line("Late.", delay=60.0), name="slow_model")
        kit = small_kit(
            [asks("shop", "rewards"), stitched],
            {"shop": slow, "rewards": ScriptedModel(lambda _: Line("Here."))},
        )
        kit.store = SqliteStore(path)
        with inject_faults(faults):
            asked = run_turn("coffee and points", Session(id="s", principal=WHO), kit)
        reply = await asked
        kit.store.close()
        return reply

    return run_virtual(turn())


@pytest.mark.req("SO-20")
def test_the_trace_says_under_a_timed_out_agent_what_took_the_time_and_what_helps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    path = tmp_path / "kit.db"
    reply = timed_out(path)
    with app_over(path, monkeypatch):
        page = room("traces", turn=reply.turn_id).run()
        [told] = [str(one.value) for one in page.info]
        assert told.replace("\\", "").startswith(
            "Shop ran out of time in one call of the model slow_model: 8.00 of 8.00 s. What helps:"
        )
        assert all(f"`{', '.join(remedy.keys)}`" in told for remedy in REMEDIES["model"])
        answered = next(span for span in reply.trace.spans if span.name == "rewards")
        page.query_params["span"] = answered.id
        assert not page.run().info, "an agent that answered has no such line"


def test_the_trace_of_a_turn_made_to_fail_gives_no_advice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    path = tmp_path / "kit.db"
    reply = timed_out(path, [Fault(where="shop", kind="hang")])
    late = next(span for span in reply.trace.spans if span.name == "shop")
    with app_over(path, monkeypatch):
        page = room("traces", turn=reply.turn_id, span=late.id).run()
        assert "Shop does not answer in time" in shown(page)
        assert not page.exception and not page.info, "nobody has to mend what was meant"
