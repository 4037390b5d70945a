"""The Streamlit entry: `make app` serves it. Pages live in kit/ui, a room each."""

import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module

import streamlit as st

from kit.ui.shared import address
from kit.ui.shared.frame import deck_pages, draw_style, freeze_modules
from kit.ui.shared.visitor import draw_identity, draw_refusal, find_refusal, is_operator


def drawn_by(page: str) -> Callable[[], None]:
    """Returns a function that draws the page of one room of kit/ui; a page is imported when it is opened first."""
    if refusal is not None:
        return partial(draw_refusal, refusal)
    return lambda: import_module(f"kit.ui.{page}.page").page()


st.set_page_config(
    page_title="subagent-kit",
    page_icon="🧭",
    layout="wide",
)
freeze_modules(len(sys.modules))
address.keep()
draw_style()
# Before anything of a page is drawn, or even imported, somebody has to be there who may see it.
refusal = find_refusal()
pages = {
    "chat": st.Page(drawn_by("chat"), title="Chat", icon=":material/chat:", default=True),
    "traces": st.Page(
        drawn_by("traces"), title="Traces", icon=":material/account_tree:", url_path="traces"
    ),
    "plans": st.Page(
        drawn_by("plans"), title="Plans", icon=":material/checklist:", url_path="plans"
    ),
    "compare": st.Page(
        drawn_by("compare"), title="Compare", icon=":material/compare_arrows:", url_path="compare"
    ),
}
if refusal is not None or is_operator():
    # It breaks parts on purpose, which is not for everybody; its link stands on the first screen.
    pages["demo"] = st.Page(
        drawn_by("demo"),
        title="Demo",
        icon=":material/slideshow:",
        url_path="demo",
        visibility="hidden",
    )
    pages["cards"] = st.Page(
        drawn_by("cards"), title="Cards", icon=":material/style:", url_path="cards"
    )
    pages["metrics"] = st.Page(
        drawn_by("metrics"), title="Metrics", icon=":material/monitoring:", url_path="metrics"
    )
    pages["benchmarks"] = st.Page(
        drawn_by("benchmarks"), title="Benchmarks", icon=":material/science:", url_path="benchmarks"
    )
for name, draw in deck_pages().items():
    if refusal is not None:
        draw = partial(draw_refusal, refusal)
    # The prefix keeps a deck's page from taking the address of one of the kit's.
    pages[f"own-{name}"] = st.Page(
        draw,
        title=name.replace("_", " ").capitalize(),
        icon=":material/extension:",
        url_path=f"own-{name}",
    )
if refusal is None:
    st.session_state["pages"] = pages
    page = st.navigation(list(pages.values()), position="top")
    # The other pages have no sidebar, and need the width.
    if page.title == "Chat":
        draw_identity()
else:
    page = st.navigation(list(pages.values()), position="hidden")
with st.container(
    key="page", height=1, border=False, autoscroll=False
):  # as low as that until the style is there
    page.run()
