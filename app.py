"""The Streamlit entry: `make app` serves it. Pages live in kit/ui/pages."""

import streamlit as st

from kit.ui import address
from kit.ui.frame import colours
from kit.ui.pages import benchmarks, cards, chat, metrics, traces

st.set_page_config(page_title="dispatch-kit", page_icon="🧭", layout="wide")
address.keep()
colours()
pages = {
    "chat": st.Page(chat.page, title="Chat", icon=":material/chat:", default=True),
    "traces": st.Page(traces.page, title="Traces", icon=":material/account_tree:", url_path="traces"),
    "cards": st.Page(cards.page, title="Cards", icon=":material/style:", url_path="cards"),
    "metrics": st.Page(metrics.page, title="Metrics", icon=":material/monitoring:", url_path="metrics"),
    "benchmarks": st.Page(benchmarks.page, title="Benchmarks", icon=":material/science:", url_path="benchmarks"),
}
st.session_state["pages"] = pages
st.navigation(list(pages.values()), position="top").run()
