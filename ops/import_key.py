"""`custody import-key`: a private key from a hidden prompt, sealed to the signer and submitted. docs/wallets.md.

Needs no installation of the service: an address, a credential, and the key. The key is in this process alone; it is
never an argument, never in the environment, and never printed.
"""

import getpass
import os
import secrets
import sys
from argparse import Namespace
from collections.abc import Callable, Mapping
from typing import Any, Final

import httpx
import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from custody.imports.envelope import Bound, seal
from custody.imports.plaintext import FORMS, NoKey, secret_of
from custody.receipts.canonical import canonical

_TYPE: Final = "custody-import-key/1"
_SECONDS: Final = 30.0


class NotImported(RuntimeError):
    """The key was not imported; the message says what to change."""


def run(chosen: Namespace, environment: Mapping[str, str] = os.environ, ask: Callable[[str], str] | None = None) -> int:
    """Import a key; 2 when it was not."""
    try:
        print(f"{chosen.agent} now has the wallet {_import(chosen, environment, ask or _prompt)} on {chosen.chain}.")
    except (NotImported, OSError, httpx.HTTPError) as problem:
        print(f"custody import-key: {problem}", file=sys.stderr)
        return 2
    return 0


def _import(chosen: Namespace, environment: Mapping[str, str], ask: Callable[[str], str]) -> str:
    headers = _credential(environment)
    with httpx.Client(base_url=chosen.service.rstrip("/"), headers=headers, timeout=_SECONDS) as client:
        session = _call(client, f"/vault/{chosen.agent}/import/init", {"chain": chosen.chain})
        keys = chosen.jwks.read_bytes() if chosen.jwks else client.get("/.well-known/jwks.json").content
        _check(session, keys)
        aad = session["aad"]
        if (aad["agentId"], aad["chain"]) != (chosen.agent, chosen.chain):
            raise NotImported("the service answered with a session for another wallet.")
        key = ask(f"Private key for {chosen.agent} ({chosen.chain}), not shown: ").strip().encode()
        try:
            secret_of(chosen.chain, key)
        except NoKey:
            raise NotImported(f"that is no private key of {chosen.chain}: it must be {FORMS[chosen.chain]}.") from None
        bound = Bound(session["importSessionId"], aad["tenantId"], aad["agentId"], aad["chain"])
        envelope = seal(key, session["publicKey"], bound, secrets.token_bytes(12))  # noqa: TID251 - an IV
        body = {
            "importSessionId": bound.session,
            "ephemeralPublicKey": envelope.ephemeral_public_key,
            "iv": envelope.iv,
            "ciphertext": envelope.ciphertext,
            "tag": envelope.tag,
        }
        return str(_call(client, f"/vault/{chosen.agent}/import/submit", body)["walletAddress"])


def _prompt(words: str) -> str:
    if not sys.stdin.isatty():
        raise NotImported("the key is asked for on a terminal, so that no shell keeps it; run this in one.")
    return getpass.getpass(words)


def _credential(environment: Mapping[str, str]) -> dict[str, str]:
    if session := environment.get("SERVICE_SESSION"):
        return {"Authorization": f"Bearer {session}"}
    if key := environment.get("SERVICE_KEY"):
        return {"X-Service-Key": key}
    raise NotImported("set SERVICE_SESSION to the token of an owner's or admin's session, or SERVICE_KEY.")


def _call(client: httpx.Client, path: str, body: dict[str, str]) -> dict[str, Any]:
    answer = client.post(path, json=body)
    try:
        said: dict[str, Any] = answer.json()
    except ValueError:
        raise NotImported(f"{client.base_url} did not answer as Custody does (HTTP {answer.status_code}).") from None
    if not said.get("ok"):
        raise NotImported(str(said.get("error", answer.status_code)))
    data: dict[str, Any] = said["data"]
    return data


def _check(session: dict[str, Any], keys: bytes) -> None:
    """The public key must be the signer's own: what answers could be something that stands in between."""
    stated = {name: session[name] for name in ("importSessionId", "publicKey", "expiresAt", "aad")}
    try:
        found = {key["kid"]: key for key in msgspec.json.decode(keys)["keys"]}
        public = Ed25519PublicKey.from_public_bytes(_decode(found[session["attestation"]["kid"]]["x"]))
        public.verify(_decode(session["attestation"]["signature"]), canonical({"type": _TYPE, **stated}))
    except (InvalidSignature, KeyError, TypeError, ValueError, msgspec.MsgspecError):
        raise NotImported(
            "the public key is not attested by a key of the JWK set, so nothing was sealed. Somebody may stand between "
            "you and the signer."
        ) from None


def _decode(text: str) -> bytes:
    return bytes(msgspec.convert(text.replace("-", "+").replace("_", "/") + "=" * (-len(text) % 4), bytes))
