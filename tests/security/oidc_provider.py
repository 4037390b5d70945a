"""A provider of OpenID Connect on this machine: it signs in whoever comes, as the person it was made for."""

import threading
import time
import uuid
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any

import uvicorn
from joserfc import jwt
from joserfc.jwk import KeySet, RSAKey
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from tests.streamlit_server import free_port


class Provider:
    """Its endpoints, for one client."""

    def __init__(self, url: str, client_id: str, claims: Mapping[str, Any]):
        self.url = url
        self._client_id = client_id
        self._claims = claims
        self._key = RSAKey.generate_key(2048, {"kid": "provider"})
        self._nonces: dict[str, str] = {}
        self.app = Starlette(
            routes=[
                Route("/.well-known/openid-configuration", self._metadata),
                Route("/authorize", self._authorize),
                Route("/token", self._token, methods=["POST"]),
                Route("/jwks", self._jwks),
            ]
        )

    async def _metadata(self, request: Request) -> Response:
        return JSONResponse(
            {
                "issuer": self.url,
                "authorization_endpoint": f"{self.url}/authorize",
                "token_endpoint": f"{self.url}/token",
                "jwks_uri": f"{self.url}/jwks",
                "response_types_supported": ["code"],
                "subject_types_supported": ["public"],
                "id_token_signing_alg_values_supported": ["RS256"],
            }
        )

    async def _authorize(self, request: Request) -> Response:
        query = request.query_params
        assert query["client_id"] == self._client_id and "openid" in query["scope"]
        code = uuid.uuid4().hex
        self._nonces[code] = query["nonce"]
        return RedirectResponse(f"{query['redirect_uri']}?code={code}&state={query['state']}")

    async def _token(self, request: Request) -> Response:
        form = await request.form()
        now = int(time.time())
        claims = {
            **self._claims,
            "iss": self.url,
            "aud": self._client_id,
            "iat": now,
            "exp": now + 600,
            "nonce": self._nonces.pop(str(form["code"])),
        }
        token = jwt.encode({"alg": "RS256", "kid": "provider"}, claims, self._key, ["RS256"])
        return JSONResponse({"access_token": "opaque", "token_type": "Bearer", "id_token": token})

    async def _jwks(self, request: Request) -> Response:
        return JSONResponse(KeySet([self._key]).as_dict(private=False))


@contextmanager
def provider(client_id: str, claims: Mapping[str, Any]) -> Generator[Provider]:
    """Serves a provider on a free port, in a thread."""
    port = free_port()
    made = Provider(f"http://127.0.0.1:{port}", client_id, claims)
    server = uvicorn.Server(uvicorn.Config(made.app, port=port, log_level="warning"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield made
    finally:
        server.should_exit = True
        thread.join(timeout=10)
