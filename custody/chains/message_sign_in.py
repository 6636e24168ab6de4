"""Sign-in messages of EIP-4361 and Sign In With Solana, read to the letter."""

import re
from typing import Final

from custody.chains.messages import SignIn
from custody.kit.instants import read_instant

_NUMBER = re.compile(r"[1-9][0-9]{0,15}\Z")
# The clusters of Solana as sign-in messages name them, by their CAIP-2 names.
_CLUSTERS: Final = {
    "mainnet": "solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp",
    "testnet": "solana:4uhcVJyU9pJkvQyS88uRDiswHXSCkY3z",
    "devnet": "solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1",
}
# Without the backslash, by which screens write out what nobody would see.
_VISIBLE, _TIME = r"[!-\[\]-~]+", r"[0-9TZ:.+\-]{20,40}"
# In their order. Of EIP-4361 the first five must be there, of Sign In With Solana none.
_FIELDS: Final = {
    "URI": _VISIBLE,
    "Version": "1",
    "Chain ID": r"(?:solana:)?[0-9A-Za-z]{1,32}",
    "Nonce": "[0-9A-Za-z]{8,64}",
    "Issued At": _TIME,
    "Expiration Time": _TIME,
    "Not Before": _TIME,
    "Request ID": r"[!-\[\]-~]*",
}
_NEEDED: Final = 5
_SIGN_IN = re.compile(
    r"(?:([A-Za-z][A-Za-z0-9+.\-]*)://)?([!-.0-\[\]-~]+) wants you to sign in with your (Ethereum|Solana) account:"
    r"\n([0-9A-Za-z]{32,44})"
    rf"(?:\n\n((?!(?:{'|'.join(_FIELDS)}|Resources):)[A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;= ]+))?"
    r"(?:(\n{2,4})"
    + "".join(rf"(?:{name}: ({value})(?:\n(?!\Z)|\Z))?" for name, value in _FIELDS.items())
    + rf"(?:Resources:((?:\n- {_VISIBLE})*))?)?\Z"
)


def sign_in_of(text: str) -> SignIn | None:
    """The message in its fields, or None unless it is one to the letter."""
    if (found := _SIGN_IN.match(text)) is None:
        return None
    scheme, domain, whose, address, statement, gap, *fields, listed = found.groups()
    uri, _, chain, _, *moments, _ = fields
    ethereum = whose == "Ethereum"
    times = [read_instant(one) if one else None for one in moments]
    caip2 = _chain(chain, ethereum=ethereum)
    if ethereum:
        # EIP-4361 keeps the line of a statement that is absent; wallets of Solana mostly leave it out.
        # Of one that is empty it prints that line too.
        sound = gap in (("\n" * 3, "\n" * 4) if statement is None else ("\n" * 2,)) and None not in fields[:_NEEDED]
    else:
        sound = not text.endswith("\n") and gap in (None, "\n" * 2, *(("\n" * 3,) if statement is None else ()))
    if not sound or [one is None for one in (caip2, *times)] != [one is None for one in (chain, *moments)]:
        return None
    return SignIn(
        family="evm" if ethereum else "solana",
        scheme=scheme,
        domain=domain,
        address=address,
        uri=uri,
        chain=caip2,
        issued_at=times[0],
        expiration_time=times[1],
        not_before=times[2],
        resources=tuple((listed or "").split("\n- ")[1:]),
    )


def _chain(named: str | None, *, ethereum: bool) -> str | None:
    """The CAIP-2 name of a chain, or None for one that is not known."""
    if named is None:
        return None
    if ethereum:
        return f"eip155:{named}" if _NUMBER.match(named) else None
    return named if named in _CLUSTERS.values() else _CLUSTERS.get(named.removeprefix("solana:"))
