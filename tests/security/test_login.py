"""Streamlit's own login, with a provider on this machine: who is signed in is who asks."""

from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path

import httpx

from kit.stores.sqlite import SqliteStore
from tests.browser.raw import RawVisitor, raw_visitor
from tests.security.oidc_provider import provider
from tests.streamlit_server import Served, free_port, serve

CLAIMS = {"sub": "u-ada", "name": "Ada", "tid": "globex", "groups": ["kit-operators"]}


@contextmanager
def visit(app: Served, browser: httpx.Client) -> Generator[RawVisitor]:
    """Opens the page with the cookies of a browser."""
    browser.get(f"{app.url}/_stcore/health")
    cookies = "; ".join(f"{cookie.name}={cookie.value}" for cookie in browser.cookies.jar)
    xsrf = browser.cookies["_streamlit_xsrf"]
    with raw_visitor(app.url, {"Cookie": cookies}, ["streamlit", xsrf]) as visitor:
        visitor.address = "tenant=acme&user=u-001"
        visitor.run()
        yield visitor


def test_a_login_says_who_asks_until_the_logout(tmp_path: Path) -> None:
    port = free_port()
    with provider("chat", CLAIMS) as issuer:
        secrets = tmp_path / "secrets.toml"
        secrets.write_text(
            f"""
            [auth]
            redirect_uri = "http://127.0.0.1:{port}/oauth2callback"
            cookie_secret = "a secret of this server and of nobody else"
            client_id = "chat"
            client_secret = "known to the provider"
            server_metadata_url = "{issuer.url}/.well-known/openid-configuration"
            """
        )
        settings = {
            "KIT_PACE": "0",
            "KIT_VISITOR": "oidc",
            "KIT_TENANT_CLAIM": "tid",
            "KIT_OPERATOR_CLAIM": "groups=kit-operators",
            "STREAMLIT_SECRETS_FILES": str(secrets),
        }
        with (
            serve(tmp_path, settings, port=port) as app,
            httpx.Client(follow_redirects=True, timeout=120) as browser,
        ):
            with visit(app, browser) as nobody:
                assert "people who are signed in" in nobody.text
                assert "chat_input" not in nobody.text
                nobody.run(click="Sign in")
            browser.get(app.url + nobody.redirect)
            with visit(app, browser) as ada, visit(app, browser) as other_tab:
                assert "Signed in as Ada" in ada.text and "Signed in as Ada" in other_tab.text
                ada.run("How many points do I have?")
                ada.run(click="Sign out")
                other_tab.run("Which coffee deals are there?")
                assert "You have signed out" in other_tab.text
                assert "chat_input" not in other_tab.text
            with closing(SqliteStore(app.store)) as store:
                (turn,) = store.turns(limit=5)
            assert (turn.tenant_id, turn.user_id) == ("globex", "u-ada")
            browser.get(app.url + ada.redirect)
            with visit(app, browser) as nobody:
                assert "people who are signed in" in nobody.text
                nobody.run(click="Sign in")
            browser.get(app.url + nobody.redirect)
            with visit(app, browser) as ada:
                assert "Signed in as Ada" in ada.text, "the next login is another one"
