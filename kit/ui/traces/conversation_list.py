"""The list of the visitor's conversations, and the head of one of them: where to go on with it."""

from datetime import datetime
from typing import TYPE_CHECKING, Any

import streamlit as st

from kit.core.context import Principal
from kit.core.display.count import many
from kit.ui.shared.frame import draw_link
from kit.ui.shared.selection import draw_rows
from kit.ui.shared.wording import literal

if TYPE_CHECKING:
    from kit.stores.turn_store import TurnStore

PAGE = 15


def draw_conversations(store: "TurnStore", principal: Principal) -> None:
    """Draws the conversations of a principal, the newest first; a click shows the turns of one."""
    page_index = int(st.session_state.get("conversations-page", 1)) - 1
    rows, count = store.conversations(principal, PAGE, page_index * PAGE)
    table: list[dict[str, Any]] = []
    for row in rows:
        question = " ".join(row.first.split())
        when = datetime.fromtimestamp(row.newest)
        table.append({"First question": question, "Turns": row.turns, "Newest turn": when})
    columns = {
        "First question": st.column_config.TextColumn(width=520),
        "Turns": st.column_config.NumberColumn(width=70),
        "Newest turn": st.column_config.DatetimeColumn(format="D MMM, HH:mm", width=110),
    }
    ids = [row.id for row in rows]
    words = "Conversations, the newest first; choose one to see its turns"
    draw_rows(table, ids, "conversation", f"conversations-{page_index}-{count}", words, columns)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(
            f"{many(count, 'conversation')}. Choose one to see its turns, and to go on with it."
        )
        if count > PAGE:
            st.space("stretch")
            st.pagination(-(-count // PAGE), key="conversations-page")


def draw_conversation(store: "TurnStore", principal: Principal, session: str) -> None:
    """Draws the head of one conversation: its first question, the way back, and the way into the chat."""
    turns = store.turns(session, principal.tenant_id, principal.user_id, limit=1)
    with st.container(horizontal=True, vertical_alignment="center", key="conversation-head"):
        st.button(
            "All conversations", icon=":material/arrow_back:", type="tertiary", on_click=leave
        )
        st.space("stretch")
        if turns:
            draw_link("chat", "Go on in the chat", session=session)
    if turns:
        st.markdown(f"Its newest question: {literal(turns[0].message)}")
    else:
        st.markdown("There is no such conversation of yours.")


def leave() -> None:
    """Goes back from one conversation to the lists."""
    st.query_params.pop("conversation", None)
