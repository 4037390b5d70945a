"""Who asks: the one place that decides for which tenant and user a page is drawn, and whether it is at all."""

import hashlib
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import streamlit as st
from streamlit.errors import StreamlitAuthError

from kit.core.context import Principal
from kit.core.errors import KitError
from kit.core.extra import require
from kit.core.value import Value
from kit.settings import Settings
from kit.ui.shared import address
from kit.ui.shared.signed_token import TokenError, read_claims
from kit.ui.shared.wording import literal

if TYPE_CHECKING:
    from kit.ui.shared.host import Host

BEARER = "bearer "
MOST_ENDED = 10_000
_ended_logins: dict[str, None] = {}
"""Logins that ended here, oldest first: an open tab keeps the claims that it began with, whatever its cookie says."""


class Identity(Value):
    """Somebody who is signed in, by the claims of whoever signed them in."""

    user_id: str
    tenant_id: str | None = None
    """None is the tenant of the settings, else the deck's."""
    name: str = ""
    is_operator: bool = False


class NoIdentity(KitError):
    """Nobody is signed in, or somebody of whom too little is known."""


class Refusal(Value):
    """Why no page is drawn."""

    sentence: str
    can_sign_in: bool = False
    """Whether a button would help."""


def is_demo() -> bool:
    """Whether everybody who reaches the page is one visitor, who may pass for any of the deck's people."""
    return Settings.read().visitor == "demo"


def identify(settings: Settings) -> Identity:
    """Returns who is signed in, as `KIT_VISITOR` says; the address has no part in it.

    Raises NoIdentity or SettingsError, each with a sentence for the page.
    """
    if settings.visitor == "oidc":
        claims = _claims_of_login()
    else:
        claims = _claims_of_header(settings)
    user_id = _id_of(claims, settings.visitor_claim)
    if settings.visitor_claim == "email" and claims.get("email_verified") in (False, "false"):
        raise NoIdentity("Your e-mail address is not verified, so it cannot say who you are.")
    tenant_id = None
    if settings.tenant_claim:
        tenant_id = _id_of(claims, settings.tenant_claim)
    name = claims.get("name") or claims.get("email") or user_id
    return Identity(
        user_id=user_id,
        tenant_id=tenant_id,
        name=str(name),
        is_operator=_has_operator_claim(claims, settings.operator_claim),
    )


def _claims_of_login() -> Mapping[str, Any]:
    require("oidc", "authlib", "joserfc")
    claims: Mapping[str, Any] = dict(st.user.to_dict())
    if not claims.get("is_logged_in"):
        raise NoIdentity("This app shows its pages to people who are signed in.")
    if _login_of(claims) in _ended_logins:
        raise NoIdentity(
            "You have signed out. This app shows its pages to people who are signed in."
        )
    return claims


def _login_of(claims: Mapping[str, Any]) -> str:
    """Returns what tells one login from every other one, the next of the same person included."""
    text = json.dumps(claims, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def _sign_out() -> None:
    claims: Mapping[str, Any] = dict(st.user.to_dict())
    # Where nothing says when it was issued, the next login of this person looks the same.
    if "iat" in claims:
        _ended_logins[_login_of(claims)] = None
        if len(_ended_logins) > MOST_ENDED:
            del _ended_logins[next(iter(_ended_logins))]
    st.logout()


def _claims_of_header(settings: Settings) -> Mapping[str, Any]:
    name = settings.visitor.removeprefix("header:")
    token = st.context.headers.get(name, "").strip()
    if token.lower().startswith(BEARER):
        token = token[len(BEARER) :].strip()
    if not token:
        raise NoIdentity(
            "Nobody is signed in: your request came without the header that says who asks. Open "
            "this app at the address that your colleagues use."
        )
    try:
        return read_claims(token, settings.visitor_key or "", settings.visitor_audience)
    except TokenError as error:
        raise NoIdentity(str(error)) from error


def _id_of(claims: Mapping[str, Any], claim: str) -> str:
    """Returns an id that a claim holds. Raises NoIdentity for one that is missing, or could not stand in a key."""
    # It brings the stores: the demo's first screen does not wait for them.
    from pydantic import TypeAdapter, ValidationError

    from kit.service.bodies import Id

    try:
        return TypeAdapter(Id).validate_python(claims.get(claim), strict=True)
    except ValidationError as error:
        raise NoIdentity(
            f"Your sign-in has no {claim!r} that could stand for you here: up to 128 letters, digits "
            "and . @ : + - are possible. Tell whoever runs this app."
        ) from error


def _has_operator_claim(claims: Mapping[str, Any], operator_claim: str | None) -> bool:
    if operator_claim is None:
        return False
    name, _, value = operator_claim.partition("=")
    claim = claims.get(name)
    if isinstance(claim, list):
        return value in claim
    return claim == value


def visitor(host: "Host") -> Principal:
    """Returns the visitor's principal: every page shows its sessions and traces and nobody else's.

    In the demo the address may name one of the deck's people, else it is the settings' own. Raises
    NoIdentity where nobody is signed in.
    """
    default = host.kit.session("").principal
    settings = Settings.read()
    if settings.visitor != "demo":
        identity = identify(settings)
        return Principal(
            tenant_id=identity.tenant_id or default.tenant_id, user_id=identity.user_id
        )
    person = Principal(
        tenant_id=address.read("tenant") or default.tenant_id,
        user_id=address.read("user") or default.user_id,
    )
    if person in host.people:
        return person
    return default


def is_operator() -> bool:
    """Whether the visitor may see figures of the whole tenant, start grids, and make parts fail on
    purpose: everybody in the demo, else whom `KIT_OPERATOR_CLAIM` names."""
    settings = Settings.read()
    return settings.visitor == "demo" or identify(settings).is_operator


def find_refusal() -> Refusal | None:
    """Returns why no page may be drawn; None where one may be."""
    try:
        settings = Settings.read()
    # Which visitors there are is not known, so there are none.
    except KitError as error:
        return Refusal(sentence=str(error))
    if settings.visitor == "demo":
        return None
    try:
        identity = identify(settings)
    except KitError as error:
        can_sign_in = settings.visitor == "oidc" and isinstance(error, NoIdentity)
        return Refusal(sentence=str(error), can_sign_in=can_sign_in)
    _begin_anew_for(identity)
    return None


def draw_refusal(refusal: Refusal) -> None:
    """Draws why there is no page, and the button that signs in."""
    if not refusal.can_sign_in:
        st.error(literal(refusal.sentence, len(refusal.sentence)), icon=":material/lock:")
        return
    st.markdown("## Sign in")
    st.markdown(literal(refusal.sentence))
    # Not of the primary type: in the dark its white words on light blue cannot be read.
    st.button("Sign in", icon=":material/login:", key="sign-in", on_click=_sign_in)
    error = st.session_state.pop("sign-in-error", None)
    if error:
        st.error(literal(error), icon=":material/error:")


def _sign_in() -> None:
    try:
        st.login()
    except StreamlitAuthError as error:
        st.session_state["sign-in-error"] = f"Nobody can sign in yet: {error}"


def _begin_anew_for(identity: Identity) -> None:
    """Forgets what the tab holds where somebody else is signed in than before."""
    # A tab that lost its connection keeps its state and comes back with the headers of today.
    asker = (identity.tenant_id, identity.user_id)
    if st.session_state.setdefault("asker", asker) != asker:
        st.session_state.clear()
        st.query_params.clear()
        st.rerun()


def draw_identity() -> None:
    """Draws in the sidebar who is signed in, and the way out; nothing in the demo."""
    settings = Settings.read()
    if settings.visitor == "demo":
        return
    identity = identify(settings)
    with st.sidebar.container(horizontal=True, vertical_alignment="center", key="identity"):
        st.caption(f"Signed in as {literal(identity.name)}", width="stretch")
        if settings.visitor == "oidc":
            st.button(
                "Sign out",
                icon=":material/logout:",
                type="tertiary",
                key="sign-out",
                on_click=_sign_out,
            )
