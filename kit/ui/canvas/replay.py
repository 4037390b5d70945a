"""Plays a stored turn again: a button, a slider, the speed, and a link to the moment."""

from pathlib import Path

from streamlit.delta_generator import DeltaGenerator

from kit.ui.canvas.drawing import replay_html
from kit.ui.shared import address
from kit.ui.shared.turn_view import TurnView

SCRIPT = Path(__file__).with_name("replay.js")


def draw_replay(place: DeltaGenerator, view: TurnView, moment: str = "") -> None:
    """Draws the controls, in a container whose key begins with `canvas-`; `moment`: seconds at which
    the canvas opens, or nothing for its end."""
    target = address.link("traces", turn=view.turn_id)
    html = replay_html(view, target, moment)
    place.html(f"{html}<script>{SCRIPT.read_text()}</script>", unsafe_allow_javascript=True)
