"""Under an agent whose time ran out a trace says what it went to and what helps, read by
Streamlit's own test driver."""

import pytest

from kit.core.context import Session
from kit.core.timeout import REMEDIES
from kit.models.scripted import Line, ScriptedModel
from kit.runtime.clock import run_virtual
from kit.runtime.turn import Reply, run_turn
from kit.stores.sqlite import SqliteStore
from tests.app.logs import WHO
from tests.app.rooms import app_over, room
from tests.kits import asks, small_kit, stitched


@pytest.mark.req("SO-20")
def test_the_trace_says_under_a_timed_out_agent_what_took_the_time_and_what_helps(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
):
    path = tmp_path_factory.mktemp("late") / "kit.db"

    async def turn() -> Reply:
        slow = ScriptedModel(lambda _: Line("Late.", delay=60.0), name="slow_model")
        kit = small_kit(
            [asks("shop", "rewards"), stitched],
            {"shop": slow, "rewards": ScriptedModel(lambda _: Line("Here."))},
        )
        kit.store = SqliteStore(path)
        reply = await run_turn("coffee and points", Session(id="s", principal=WHO), kit)
        kit.store.close()
        return reply

    reply = run_virtual(turn())
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
