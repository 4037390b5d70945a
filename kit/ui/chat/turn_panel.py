"""The panel "This turn": beside the chat in a wide window, behind a button on a phone; it shows
what the stored events say."""

from collections.abc import Iterable
from html import escape

from streamlit.delta_generator import DeltaGenerator

from kit.core.bodies.turn import PlanTaken
from kit.ui.shared.frame import draw_link
from kit.ui.shared.turn_facts import facts_html, headline
from kit.ui.shared.turn_view import TurnView
from kit.ui.shared.wording import label, tag_html

EXPLAINED = (
    "Once you ask, this shows whom the message was sent to, what the limit did, whose data was "
    "read, what failed and how "
    "the answer owned up to it, and what it took."
)


class Panel:
    """The panel in two places, of which the width of the window hides one."""

    def __init__(self, desk: DeltaGenerator, phone: DeltaGenerator, *, full: bool):
        self._full = full
        self._places = [(slot.empty(), slot.empty()) for slot in (desk, phone)]
        self._html = ""

    def explain(self, agents: Iterable[str]) -> None:
        """Draws what the panel will show, and the sub-agents that can be asked."""
        tags = "".join(tag_html(label(agent)) for agent in agents)
        self._show(
            f'<h3>This turn</h3><p>{escape(EXPLAINED)}</p><p>Who can be asked:</p><p class="who">{tags}</p>'
        )

    def draw(self, view: TurnView) -> None:
        """Brings the panel up to date; nothing is sent when nothing changed."""
        tag = headline(view)
        self._show(
            f"<h3>This turn {tag_html(tag.text, tag.tone)}</h3>{facts_html(view, full=self._full)}"
        )
        for _, link in self._places:
            if not view.running:
                open_trace(link, view.turn_id)
            elif view.bodies(PlanTaken):
                open_plan(link, view)

    def _show(self, html: str) -> None:
        if html != self._html:
            self._html = html
            for slot, _ in self._places:
                slot.html(f'<section class="turn" aria-label="This turn">{html}</section>')


def open_plan(slot: DeltaGenerator, view: TurnView) -> None:
    """Draws a link to the plan that a turn works on; nothing for a turn that is none."""
    for plan in view.bodies(PlanTaken):
        draw_link(slot, "plans", "Open plan", ":material/checklist:", plan=plan.plan_id)


def open_trace(slot: DeltaGenerator, turn_id: str) -> None:
    """Draws a link to the turn's trace."""
    draw_link(slot, "traces", "Open trace", ":material/account_tree:", turn=turn_id)
