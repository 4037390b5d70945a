"""The Streamlit entry: `make app` serves it. Pages live in kit/ui/pages."""

import streamlit as st

from kit.ui.frame import new_session
from kit.ui.pages import cards, chat, traces

st.set_page_config(page_title="dispatch-kit", page_icon="🧭", layout="centered")
if "session" not in st.query_params:
    new_session()
pages = [
    st.Page(chat.page, title="Chat", icon=":material/chat:", default=True),
    st.Page(traces.page, title="Traces", icon=":material/account_tree:", url_path="traces"),
    st.Page(cards.page, title="Cards", icon=":material/style:", url_path="cards"),
]
st.navigation(pages, position="top").run()
