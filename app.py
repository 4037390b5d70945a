"""The Streamlit entry: `make app` serves it. Pages live in kit/ui/pages."""

import streamlit as st

from kit.ui.pages import chat

st.set_page_config(page_title="dispatch-kit", page_icon="🧭", layout="centered")
if "session" not in st.query_params:
    chat.new_session()
st.navigation([st.Page(chat.page, title="Chat", icon=":material/chat:", default=True)], position="top").run()
