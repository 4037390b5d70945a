"""The panel "This turn": beside the chat in a wide window, behind a button on a phone; it shows
what the stored events say."""

from collections.abc import Iterable

from streamlit.delta_generator import DeltaGenerator

from kit.core.bodies.turn import PlanTaken
from kit.ui.shared.frame import draw_link
from kit.ui.shared.place import Place
from kit.ui.shared.template import render
from kit.ui.shared.turn_facts import facts, headline
from kit.ui.shared.turn_view import TurnView


class Panel:
    """The panel in two places, of which the width of the window hides one."""

    def __init__(self, desk: DeltaGenerator, phone: DeltaGenerator):
        self._places = [(Place(slot.empty()), slot.empty()) for slot in (desk, phone)]

    def explain(self, agents: Iterable[str]) -> None:
        """Draws what the panel will show, and the sub-agents that can be asked."""
        self._show(render("turn_panel", ending=None, agents=agents))

    def draw(self, view: TurnView) -> None:
        """Brings the panel up to date; nothing is sent when nothing changed."""
        self._show(render("turn_panel", ending=headline(view), facts=facts(view)))
        for _, link in self._places:
            with link:
                if not view.running:
                    draw_link("traces", "Open trace", turn=view.turn_id)
                else:
                    open_plan(view)

    def _show(self, html: str) -> None:
        for place, _ in self._places:
            place.html(html)


def open_plan(view: TurnView) -> None:
    """Draws a link to the plan that a turn works on; nothing for a turn that is none."""
    for plan in view.bodies(PlanTaken):
        draw_link("plans", "Open plan", plan=plan.plan_id)


def open_others(view: TurnView) -> None:
    """Draws a link to what others would have said in a turn; nothing where it answered everything."""
    is_over = view.routing is not None and view.status != "paused"
    if is_over and not view.parts.is_complete and not view.is_plan:
        turn_id = view.turn_id
        words = "What other systems would have said"
        draw_link("compare", words, turns=turn_id, others=turn_id)
