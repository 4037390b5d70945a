"""The page Demo, at /demo: a deck's scenes in large type, each a real turn that ends on one number."""

import uuid
from functools import partial
from pathlib import Path

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from kit.compose.page import PageSettings, Scene, scenes_of
from kit.compose.read import read_outline
from kit.core.context import Principal
from kit.metrics.breakages import breakages
from kit.settings import Settings
from kit.ui.canvas.lane import now_of
from kit.ui.chat.turn_canvas import Canvas
from kit.ui.compare.others import RESULT, draw_plain_loops
from kit.ui.demo.figure import Figure, figure_of, scene_of_others, stored_figure
from kit.ui.shared import address
from kit.ui.shared.frame import draw_link, with_host
from kit.ui.shared.host import Host
from kit.ui.shared.template import render
from kit.ui.shared.turn_view import TurnView
from kit.ui.shared.visitor import visitor
from kit.ui.shared.wording import literal, speaker_words

LOOK = Path(__file__).with_name("page.css")
CLAIM = "Ask several agents at once. When one fails, the answer says so."
WHY = (
    "One message can ask for several things, and each part goes to the agent that knows it.",
    "Sooner or later one of them fails, and most systems then lose what the others found, or keep silent.",
    "Here every part is answered, or the answer says that it is missing.",
)
OTHERS = Scene(
    label="What other systems would have said.",
    question="",
    look="The same calls, the same answers and the same failure, in a plain loop that the same model words.",
)
_REMEMBERED = "demo-turns"
_STARTS = "demo-started"
"""How many turns this visit has started here."""


@with_host
def page(host: Host, top: DeltaGenerator) -> None:
    """Draws the scene of the address; without one, what this is and which scenes there are."""
    st.html(LOOK)
    settings = read_outline(Settings.read().deck).page
    settings = settings.model_copy(update={"scenes": scenes_of(settings)})
    scenes = settings.scenes
    beside = scene_of_others(scenes)
    # What other systems would have said is read from the store, which a service keeps to itself.
    if beside is not None and not host.is_remote and RESULT.exists():
        scenes = (*scenes, OTHERS)
    part = address.read("scene")
    number = int(part) if part.isdecimal() and 0 < int(part) <= len(scenes) else 0
    if not number:
        _draw_opening(host, scenes)
        return
    _draw_keys(scenes, number)
    if scenes[number - 1] is OTHERS and beside is not None:
        _draw_others(host, settings, number, beside)
    else:
        _draw_scene(host, settings, number)
    _draw_counter(host)
    _draw_way_out()


def _draw_counter(host: Host) -> None:
    """Says what became of everything that was broken on purpose here; nothing before anything was."""
    if not host.is_remote:
        counts = breakages(host.kit.store)
        if counts.broken or counts.leaked:
            st.markdown(f"So far: **{counts}**.")


def _draw_keys(scenes: tuple[Scene, ...], number: int) -> None:
    """Draws a button for each scene, which its number presses, and the ways to its neighbours."""
    with st.container(horizontal=True, vertical_alignment="center", key="scenes"):
        for key, scene in enumerate(scenes, 1):
            label = scene.label.rstrip(".")
            if not number:
                name = f"scene-{key}"
            elif key == number:
                name = f"scene-now-{key}"
            else:
                name = f"scene-key-{key}"
            with st.container(key=name, width="content"):
                st.button(
                    str(key) if number else label,
                    key=f"go-{key}",
                    shortcut=str(key) if key < 10 else None,
                    help=label if number else None,
                    on_click=partial(_go, key),
                )
        if number:
            _draw_step("Back", "arrow_back", "Left", max(0, number - 1))
        if number < len(scenes):
            _draw_step("Next" if number else "Begin", "arrow_forward", "Right", number + 1)
        if number:
            st.button(
                "Again", icon=":material/replay:", shortcut="A", on_click=partial(_again, number)
            )


def _draw_step(name: str, icon: str, shortcut: str, number: int) -> None:
    st.button(name, icon=f":material/{icon}:", shortcut=shortcut, on_click=partial(_go, number))


def _go(number: int) -> None:
    if number:
        st.query_params["scene"] = str(number)
    else:
        st.query_params.pop("scene", None)


def _again(number: int) -> None:
    _turns().pop(number, None)


def _turns() -> dict[int, str]:
    """Returns the turns that this visit has played, by the number of their scene."""
    return st.session_state.setdefault(_REMEMBERED, {})


def _draw_opening(host: Host, scenes: tuple[Scene, ...]) -> None:
    with st.container(key="why"):
        st.markdown(f"# {CLAIM}")
        for sentence in WHY:
            st.markdown(sentence)
    _draw_keys(scenes, 0)
    keys = f"Press 1 to {len(scenes)}, or the arrow keys."
    if len(scenes) == 1:
        keys = "Press 1."
    st.caption(
        f"{keys} Every scene is a real turn, played while you look. Every number is measured in that turn, "
        f"or read from a stored result that is named beside it. "
        f"{speaker_words(host.words_of(None))}"
    )
    _draw_counter(host)
    _draw_way_out()


def _draw_way_out() -> None:
    draw_link("chat", "Ask something of your own")


def _draw_scene(host: Host, settings: PageSettings, number: int) -> None:
    place = _draw_head(number, settings.scenes[number - 1])
    view = _play(host, settings, number, place)
    _draw_figure(place, figure_of(view))


def _draw_others(host: Host, settings: PageSettings, number: int, beside: int) -> None:
    place = _draw_head(number, OTHERS)
    view = _play(host, settings, beside, place, leaves=True)
    turn = host.kit.store.turn(view.turn_id, visitor(host))
    _draw_figure(place, stored_figure())
    if turn is None:
        return
    st.markdown(f"“{literal(view.question)}”")
    draw_plain_loops(host, turn, view)
    turn_id = view.turn_id
    label = "All systems of the stored table"
    draw_link("compare", label, turns=turn_id, others=turn_id)


def _draw_head(number: int, scene: Scene) -> DeltaGenerator:
    """Draws what a scene is about; returns the place of its number, which is as high before it is known."""
    st.markdown(f"## {number}. {scene.label}")
    st.markdown(literal(scene.look))
    place = st.empty()
    _draw_figure(place, Figure(number="…", words="the number comes when the turn has ended"))
    return place


def _draw_figure(place: DeltaGenerator, figure: Figure) -> None:
    place.html(render("figure", number=figure.number, words=figure.words))


def _play(
    host: Host, settings: PageSettings, number: int, place: DeltaGenerator, *, leaves: bool = False
) -> TurnView:
    """Draws the turn of a scene until it has ended, and returns it; one that this visit has not played is started.
    `leaves`: its place is empty after that."""
    principal = visitor(host)
    view = host.view(_turns().get(number, ""), principal)
    if view is None:
        _turns()[number] = _start(host, settings.scenes[number - 1], principal)
        view = host.view(_turns()[number], principal)
        assert view is not None
        st.session_state[_STARTS] = st.session_state.get(_STARTS, 0) + 1
    # Two places in turn: what the last turn left in its own would stand greyed under this one until it ends.
    slots = (st.empty(), st.empty())
    slot = slots[st.session_state.get(_STARTS, 0) % 2]
    canvas = Canvas(view, host, slot.container(), settings, drawn=False)
    canvas.draw(view)
    while view.running:
        view = host.advance(view)
        if view.running:
            words = f"{view.headline.lower()}, on its own clock"
            _draw_figure(place, Figure(number=f"{now_of(view):.1f} s", words=words))
        canvas.draw(view)
    if leaves:
        slot.empty()
    return view


def _start(host: Host, scene: Scene, principal: Principal) -> str:
    """Starts the turn of a scene in a conversation of its own: no scene has heard of another."""
    session = host.session(uuid.uuid4().hex, principal)
    assert session is not None
    return host.start(scene.question, session, scene.faults, cap=scene.cap)
