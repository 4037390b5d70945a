"""The signed token that a proxy sends with each request: nothing in it is believed before its signature is."""

import json
import logging
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kit.core.errors import KitError, SettingsError
from kit.core.extra import require

if TYPE_CHECKING:
    from joserfc.jwk import Key, KeySet

log = logging.getLogger("kit.visitor")
SHORTEST_SECRET = 32
"""Bytes of a shared secret: a shorter one can be guessed from one token (RFC 7518, 3.2)."""
SECRET_ALGORITHMS = ("HS256",)
KEY_PAIR_ALGORITHMS = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512", "EdDSA", "Ed25519"),
)
LEEWAY = 30
"""Seconds by which two clocks may differ."""


class TokenError(KitError):
    """A token that says nothing that could be believed now."""


def read_claims(token: str, key: str, audience: str | None) -> Mapping[str, Any]:
    """Returns the claims of a token that is signed with this key, for this audience, and valid now.

    `key` is a shared secret, or the path of a JWKS or of a public key as PEM. Raises TokenError for
    any other token, and SettingsError for a key that cannot be used.
    """
    require("oidc", "joserfc")
    from joserfc import jwt
    from joserfc.errors import ExpiredTokenError, JoseError

    # Which algorithms count is the key's to say and never the token's: else a public key, which
    # everybody has, could be passed off as a shared secret, and `none` as a signature.
    path = _path_of(key)
    if path is None:
        verification_key, algorithms = _secret(key), SECRET_ALGORITHMS
    else:
        verification_key, algorithms = _public_key(path), KEY_PAIR_ALGORITHMS
    rules: dict[str, Any] = {"exp": {"essential": True}}
    if audience:
        rules["aud"] = {"essential": True, "value": audience}
    try:
        claims = jwt.decode(token, verification_key, algorithms=algorithms).claims
        jwt.JWTClaimsRegistry(leeway=LEEWAY, **rules).validate(claims)
    except ExpiredTokenError as error:
        raise TokenError("Your sign-in has run out. Reload the page to sign in again.") from error
    # ValueError: a token that is no base64, no UTF-8 or no JSON.
    except (JoseError, ValueError) as error:
        log.warning("the token of a visitor was refused: %s", error)
        raise TokenError(
            "The sign-in that came with your request could not be verified. Sign in again; if that "
            "does not help, tell whoever runs this app."
        ) from error
    return claims


def _path_of(key: str) -> Path | None:
    """Returns the path that a key of the settings is; None for a secret."""
    path = Path(key)
    if key.startswith(("/", "./", "../")) or path.suffix in (".json", ".jwks", ".pem", ".pub"):
        return path
    return None


def _secret(key: str) -> "Key":
    from joserfc.jwk import OctKey

    if len(key.encode()) < SHORTEST_SECRET:
        raise SettingsError(
            f"KIT_VISITOR_KEY is unset, or a secret of fewer than {SHORTEST_SECRET} bytes, which can be guessed; "
            "make one with `openssl rand -hex 32`, or name the file of a public key (.pem, .json)"
        )
    return OctKey.import_key(key)


def _public_key(path: Path) -> "Key | KeySet":
    """Reads the keys of a file, each time anew: a proxy changes its keys without asking."""
    from joserfc.errors import JoseError
    from joserfc.jwk import KeySet, import_key

    try:
        text = path.read_text()
    except OSError as error:
        raise SettingsError(
            f"KIT_VISITOR_KEY={str(path)!r} cannot be read: {error.strerror}; a secret may not begin "
            "with a slash or a dot, or end like a file"
        ) from error
    if "-----BEGIN" in text:
        for key_type in ("RSA", "EC", "OKP"):
            # A key of another type raises.
            with suppress(JoseError, ValueError, TypeError):
                return import_key(text.strip(), key_type)
    else:
        with suppress(JoseError, ValueError, KeyError, TypeError):
            return KeySet.import_key_set(json.loads(text))
    raise SettingsError(
        f"KIT_VISITOR_KEY={str(path)!r} holds neither a JWKS nor a public key as PEM"
    )
