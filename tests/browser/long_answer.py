"""An entry for Streamlit: an answer of 54 kB in 2,000 pieces and `?paragraphs=`, folded and drawn
as the chat does it."""

import time

import streamlit as st

from kit.core.bodies.speech import Text
from kit.core.event import Event
from kit.ui.chat.growing_text import GrowingText
from kit.ui.shared.turn_fold import advance
from kit.ui.shared.turn_view import TurnView

paragraphs = int(st.query_params.get("paragraphs", 60))
answer, view = GrowingText(st.container()), TurnView()
events: list[Event] = []
for number in range(2_000):
    text = (
        "some twenty-six characters "
        if (number + 1) % (2_000 // paragraphs)
        else "and so it ends.\n\n"
    )
    events.append(
        Event(
            seq=number,
            at=number / 500,
            turn_id="t1",
            span_id="s1",
            body=Text(channel="answer", text=text),
        )
    )
for batch in (
    events[start : start + 3] for start in range(0, 2_000, 3)
):  # as many as the chat gathers when they come at 150 a second
    view = advance(view, batch)
    answer.draw(view.answer, whole=view.events[-1] is events[-1])
    time.sleep(0.002)
