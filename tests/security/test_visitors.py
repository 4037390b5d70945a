"""Outside the demo a signed token says who asks; nothing that a visitor can write in an address does."""

import base64
import hmac
import json
import time
from collections.abc import Generator, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import streamlit as st
from joserfc import jwt
from joserfc.jwk import ECKey, KeySet, OctKey, RSAKey
from streamlit.testing.v1 import AppTest

from kit.core.errors import SettingsError
from kit.home import HOME
from kit.patterns.plan_execute import PLAN
from kit.settings import Settings
from kit.stores.sqlite import SqliteStore
from kit.ui.shared.visitor import NoIdentity, identify
from tests.app.rooms import app_over, shown
from tests.browser.raw import raw_visitor
from tests.streamlit_server import Served, serve

SECRET = "a secret of the proxy, and of nobody else here"
RSA = RSAKey.generate_key(2048, {"kid": "one"})
EC = ECKey.generate_key("P-256", {"kid": "two"})
HEADER = "X-Visitor"
PAGES = ("", "metrics")
VERIFIED = "could not be verified"


def token(key: Any = None, algorithm: str = "HS256", **claims: Any) -> str:
    """A token as a proxy signs one: of ada, for this app, for an hour."""
    claims = {"sub": "ada", "aud": "chat", "exp": int(time.time()) + 3_600, **claims}
    claims = {name: value for name, value in claims.items() if value is not None}
    header: dict[str, Any] = {"alg": algorithm}
    key = key or OctKey.import_key(SECRET)
    if key.kid:
        header["kid"] = key.kid
    return jwt.encode(header, claims, key, [algorithm])


def unsigned() -> str:
    _, body, _ = token().split(".")
    head = base64.urlsafe_b64encode(b'{"alg":"none"}').decode().rstrip("=")
    return f"{head}.{body}."


@pytest.fixture
def header(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """The headers of the one request of this test, in an app that reads its visitor from them."""
    headers: dict[str, str] = {}
    monkeypatch.setattr(type(st.context), "headers", property(lambda _: headers))
    settings = {
        "VISITOR": f"header:{HEADER}",
        "VISITOR_KEY": SECRET,
        "VISITOR_AUDIENCE": "chat",
        "TENANT_CLAIM": "tid",
        "OPERATOR_CLAIM": "groups=kit-operators",
    }
    with app_over(tmp_path / "kit.db", monkeypatch, **settings):
        yield headers


def open_app(**address: str) -> AppTest:
    page = AppTest.from_file(str(HOME / "app.py"), default_timeout=3000)
    page.query_params.update(address)
    return page.run()


BAD_TOKENS = {
    "none at all": (lambda: "", "without the header"),
    "no token": (lambda: "nonsense", VERIFIED),
    "no signature": (unsigned, VERIFIED),
    "another secret": (lambda: token(OctKey.import_key("b" * 32)), VERIFIED),
    "another kind of key": (lambda: token(RSA, "RS256"), VERIFIED),
    "run out": (lambda: token(exp=int(time.time()) - 60), "run out"),
    "without an end": (lambda: token(exp=None), VERIFIED),
    "not yet valid": (lambda: token(nbf=int(time.time()) + 600), VERIFIED),
    "for another app": (lambda: token(aud="another"), VERIFIED),
    "for nobody": (lambda: token(aud=None), VERIFIED),
    "without a user": (lambda: token(sub=None), "no 'sub'"),
    "a user who is a path": (lambda: token(sub="../ada"), "no 'sub'"),
    "a user who is a line": (lambda: token(sub="ada\n"), "no 'sub'"),
    "without a tenant": (lambda: token(), "no 'tid'"),
}


@pytest.mark.parametrize("name", BAD_TOKENS)
def test_a_token_that_is_not_valid_says_who_nobody_is(name: str, header: dict[str, str]) -> None:
    make, sentence = BAD_TOKENS[name]
    if make():
        header[HEADER] = make()
    with pytest.raises(NoIdentity, match=sentence):
        identify(Settings.read())


def test_claims_say_who_asks_and_who_is_an_operator(header: dict[str, str]) -> None:
    header[HEADER] = f"Bearer {token(tid='globex', groups=['all'])}"
    page = open_app(tenant="acme", user="u-001", fault="rewards=hang")
    assert "Signed in as ada" in shown(page)
    assert "fault\\=rewards\\=hang" in shown(page) and "tenant\\=acme" in shown(page)
    labels = {box.label for box in page.selectbox}
    assert labels.isdisjoint({"Tenant", "User", "More ways to fail"}) and not page.toggle
    header[HEADER] = token(tid="globex", groups=["all", "kit-operators"])
    page = open_app(fault="rewards=hang")
    assert "More ways to fail" in {box.label for box in page.selectbox} and page.toggle


def test_a_tab_of_another_visitor_begins_anew(header: dict[str, str]) -> None:
    header[HEADER] = token(tid="globex")
    page = open_app(session="one")
    page.session_state["answers-of-ada"] = {"key": True}
    header[HEADER] = token(tid="globex", sub="bob")
    page.run()
    assert "answers-of-ada" not in page.session_state
    assert page.query_params["session"] not in ("one", ["one"])
    assert "Signed in as bob" in shown(page)


@pytest.mark.parametrize(("key", "kind"), [(RSA, "pem"), (EC, "jwks")], ids=["RS256", "ES256"])
def test_a_public_key_verifies_its_own_tokens_alone(
    key: Any, kind: str, header: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / f"key.{kind}"
    if kind == "pem":
        path.write_bytes(key.as_pem(private=False))
    else:
        path.write_text(json.dumps(KeySet([RSA, EC]).as_dict(private=False)))
    monkeypatch.setenv("KIT_VISITOR_KEY", str(path))
    algorithm = "RS256" if key is RSA else "ES256"
    settings = Settings.read()
    header[HEADER] = token(key, algorithm, tid="globex")
    assert identify(settings).user_id == "ada"
    # Whoever has the public key could sign with it, if it were taken for a secret.
    signed, _, _ = token(tid="globex").rpartition(".")
    digest = hmac.digest(path.read_bytes(), signed.encode(), "sha256")
    header[HEADER] = f"{signed}.{base64.urlsafe_b64encode(digest).decode().rstrip('=')}"
    with pytest.raises(NoIdentity, match=VERIFIED):
        identify(settings)
    header[HEADER] = token(tid="globex")
    with pytest.raises(NoIdentity, match=VERIFIED):
        identify(settings)


@pytest.mark.parametrize(
    ("key", "sentence"),
    [("", "unset"), ("short", "fewer than 32 bytes"), ("/nowhere/key.pem", "cannot be read")],
)
def test_a_key_that_cannot_be_used_admits_nobody(
    key: str, sentence: str, header: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KIT_VISITOR_KEY", key)
    header[HEADER] = token(tid="globex")
    with pytest.raises(SettingsError, match=sentence):
        identify(Settings.read())


def test_a_login_without_a_provider_says_so(
    header: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KIT_VISITOR", "oidc")
    page = open_app()
    assert not page.chat_input
    page.button(key="sign-in").click().run()
    assert "Nobody can sign in yet" in shown(page)


def test_settings_that_cannot_be_used_admit_nobody_to_the_page(
    header: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KIT_VISITOR", "headers:X-Visitor")
    header[HEADER] = token(tid="globex")
    page = open_app()
    assert "VISITOR='headers:X-Visitor' cannot be used" in shown(page) and not page.chat_input


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Generator[Served]:
    settings = {
        # A sub-agent is seen at work, also where the machine is busy.
        "KIT_PACE": "2",
        "KIT_DECK": "cards/outlets",
        "KIT_VISITOR": f"header:{HEADER}",
        "KIT_VISITOR_KEY": SECRET,
        "KIT_OPERATOR_CLAIM": "groups=kit-operators",
        "KIT_TENANT": "acme",
    }
    with serve(tmp_path_factory.mktemp("visitors"), settings) as app:
        yield app


def read(app: Served, page: str = "", address: str = "", **claims: Any) -> str:
    """All that the server sends to somebody who opens this page; without claims, without a token."""
    headers = {HEADER: token(**claims)} if claims else {}
    with raw_visitor(app.url, headers) as visitor:
        visitor.address = address
        visitor.run(page=page)
        return visitor.text


@pytest.mark.req("S-13")
def test_no_page_is_sent_to_nobody(served: Served) -> None:
    for page in PAGES:
        text = read(served, page, "tenant=acme&user=ada")
        assert "Nobody is signed in" in text
        for word in ("chat_input", "data_frame", "download_button", "selectbox", "## Traces"):
            assert word not in text, (page, word)
    assert "chat_input" in read(served, sub="ada")


@pytest.mark.req("S-13")
def test_no_address_opens_what_is_somebody_elses(served: Served) -> None:
    words = "Which outlets in Oakfield earned the most"
    with raw_visitor(served.url, {HEADER: token(sub="ada")}) as visitor:
        visitor.address = "tenant=globex&user=u-777&pattern=plan_execute"
        visitor.run()
        visitor.run(words)
        assert words in visitor.text
    with closing(SqliteStore(served.store)) as store:
        (turn,) = store.turns(limit=5)
    assert (turn.tenant_id, turn.user_id) == ("acme", "ada")
    addresses = {
        "": f"session={turn.session_id}",
        "traces": f"turn={turn.id}",
        "compare": f"turns={turn.id}",
        "plans": f"plan={PLAN}{turn.id}",
    }
    assert words in read(served, "traces", addresses["traces"], sub="ada")
    for page, address in addresses.items():
        assert words not in read(served, page, f"{address}&user=ada&tenant=acme", sub="bob"), page
    assert words not in read(served, "traces", f"conversation={turn.session_id}", sub="bob")


def test_only_an_operator_gets_the_pages_of_a_tenant(served: Served) -> None:
    for page in ("cards", "metrics", "benchmarks"):
        assert f"## {page.capitalize()}" not in read(served, page, sub="ada", groups="all"), page
    assert "## Metrics" in read(served, "metrics", sub="ada", groups="kit-operators")


def test_only_an_operator_breaks_a_sub_agent_at_work(served: Served) -> None:
    for groups, may_break in (("all", False), ("kit-operators", True)):
        claims = token(sub="ada", groups=groups)
        with raw_visitor(served.url, {HEADER: claims}) as visitor:
            visitor.run()
            visitor.run("List the outlets in Rivermont")
            assert "data-lane" in visitor.text, "a sub-agent was at work"
            assert ("Press ⚡ to break one" in visitor.text) is may_break, groups
            assert ("break-raise-" in visitor.text) is may_break, groups
