"""JSON Web Tokens of a Kubernetes API server: signature and claims (RFC 7515, 7517, 7519). Pure.

RS256 and ES256, the algorithms with which kube-apiserver signs service account tokens. Whether the claims
are good enough for anything is the caller's to say.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_pem_public_key

Key = rsa.RSAPublicKey | ec.EllipticCurvePublicKey


class InvalidToken(ValueError):
    """The token is malformed or not signed by the key."""


def verified_claims(token: str, *, jwks: Mapping[str, Any] | None, public_key: str | None) -> dict[str, Any]:
    """The claims of a token whose signature holds.

    Args:
        token: The compact serialisation.
        jwks: A JSON Web Key Set to take the key from, by the token's key id; or
        public_key: the key as PEM.

    Raises:
        InvalidToken: Malformed, signed by an unknown key, or not signed by it.
    """
    try:
        signed, _, signature = token.rpartition(".")
        header_part, _, claims_part = signed.partition(".")
        header: dict[str, Any] = json.loads(_decode(header_part))
        claims: dict[str, Any] = json.loads(_decode(claims_part))
        raw_signature = _decode(signature)
    except ValueError as error:
        raise InvalidToken("it is no JSON Web Token") from error
    keys = [_from_jwk(k) for k in (jwks or {}).get("keys", []) if header.get("kid") in {None, k.get("kid")}]
    if public_key:
        loaded = load_pem_public_key(public_key.encode())
        if isinstance(loaded, rsa.RSAPublicKey | ec.EllipticCurvePublicKey):
            keys.append(loaded)
    if not keys:
        raise InvalidToken(f"no key is known for key id {header.get('kid')!r}")
    if not any(_signed_by(key, str(header.get("alg")), signed.encode(), raw_signature) for key in keys):
        raise InvalidToken("its signature does not match the issuer's key")
    return claims


def _signed_by(key: Key, algorithm: str, message: bytes, signature: bytes) -> bool:
    try:
        if isinstance(key, rsa.RSAPublicKey) and algorithm == "RS256":
            key.verify(signature, message, padding.PKCS1v15(), SHA256())
            return True
        if isinstance(key, ec.EllipticCurvePublicKey) and algorithm == "ES256":
            r, s = int.from_bytes(signature[:32]), int.from_bytes(signature[32:])
            key.verify(encode_dss_signature(r, s), message, ec.ECDSA(SHA256()))
            return True
    except InvalidSignature:
        return False
    return False


def _from_jwk(document: Mapping[str, Any]) -> Key:
    if document.get("kty") == "RSA":
        return rsa.RSAPublicNumbers(_number(document["e"]), _number(document["n"])).public_key()
    if document.get("kty") == "EC" and document.get("crv") == "P-256":
        x, y = _number(document["x"]), _number(document["y"])
        return ec.EllipticCurvePublicNumbers(x, y, ec.SECP256R1()).public_key()
    raise InvalidToken(f"a key of kind {document.get('kty')!r} is not understood")


def _number(text: str) -> int:
    return int.from_bytes(_decode(text))


def _decode(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
