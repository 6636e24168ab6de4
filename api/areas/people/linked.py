"""Identities as callers name them: a provider and the account there. Pure.

An identity of a tenant's own provider has a JSON list for its subject: the tenant, what tells the provider from others,
and last the id that the provider gave the person.
"""

from typing import Final, Literal

import msgspec

from api.areas.people.user_types import OneIdentity, WalletChain

By = Literal["email", "phone", "wallet", "contract", "external_id", "account", "solana", "google", "discord", "twitter"]
_OF_KIND: Final = {"wallet": "wallet:ethereum", "contract": "wallet:contract", "solana": "wallet:solana"}
_BY_PROVIDER: Final[dict[str, By]] = {
    "wallet:ethereum": "wallet",
    "wallet:contract": "contract",
    "wallet:solana": "solana",
    "google": "google",
    "discord": "discord",
    "twitter": "twitter",
}
_CHAINS: Final[dict[str, WalletChain]] = {"wallet": "ethereum", "contract": "ethereum", "solana": "solana"}
_parts = msgspec.json.Decoder(list[str]).decode


class Selector(msgspec.Struct, frozen=True):
    """The person who is meant; `head` only of an account at a tenant's own provider."""

    by: By
    value: str
    head: str | None = None

    def __repr__(self) -> str:
        return f"Selector({self.by})"


def to_public(kind: str, subject: str) -> tuple[str, str]:
    """The provider and the account of an identity, as a linked account shows them."""
    if kind not in {"oidc", "saml"}:
        return _OF_KIND.get(kind, kind), subject
    parts = _parts(subject)
    return (f"oidc:{parts[1]}" if kind == "oidc" else "saml"), parts[-1]


def wallet(kind: str | None, subject: str | None) -> tuple[str | None, WalletChain | None]:
    """A wallet's address and kind of chain; a contract's subject names its chain too."""
    if kind is None or subject is None:
        return None, None
    return subject.rpartition(":")[2], _CHAINS[kind]


def of_account(provider: str, account: str, tenant: str | None) -> Selector:
    """Select the person with an account at a provider; OneIdentity where that means nobody in particular."""
    if provider in _BY_PROVIDER:
        return Selector(_BY_PROVIDER[provider], account)
    name, _, ident = provider.partition(":")
    if (name, bool(ident)) not in {("oidc", True), ("saml", False)}:
        raise OneIdentity(f"No linked account has the provider {provider!r}.", fields=["provider"])
    if tenant is None:
        raise OneIdentity(f"{provider} is a tenant's own provider: send tenantId with it.", fields=["tenantId"])
    head = msgspec.json.encode([tenant, ident] if ident else [tenant]).decode()[:-1] + ","
    tail = f",{msgspec.json.encode(account).decode()}]"[::-1]
    for special in "\\%_":
        tail = tail.replace(special, f"\\{special}")
    return Selector("account", f"{tail}%", head)
