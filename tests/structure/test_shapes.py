"""Every shape of what callers send is closed: no newline at its end, no NUL, not one character too many."""

import msgspec
import pytest

from custody.kit import shapes

GOOD = {
    "AgentId": "a-B_c.d:1",
    "TenantId": "a-B_c.d:1",
    "AccountId": "a-B_c.d:1",
    "Uuid": "01234567-89ab-cdef-0123-456789abcdef",
    "PolicySetId": "01234567-89ab-cdef-0123-456789abcdef",
    "DisplayName": "An agent",
    "EvmAddress": "0x" + "aB" * 20,
    "SolanaAddress": "1" * 32,
    "DecimalAmount": "10",
    "Calldata": "0xab",
    "WalletScopeText": "bitcoin:mainnet:p2wpkh:0:0:0",
    "ReferenceId": "r-1",
    "Duration": "24h",
    "Digest": "0" * 64,
    "ProviderId": "okta-1",
    "ProviderName": "a-B_c.d:1~okta-1",
    "DomainText": "example.com",
    "DomainInPath": "example.com",
    "ClientId": "web_app-1",
    "Reason": "no",
    "HashOrAddress": "0xabc",
    "Url": "https://example.com",
}
# What people wrote freely may have lines.
FREE = {"Reason"}
SHAPES = {
    name: shape
    for name, shape in vars(shapes).items()
    if getattr(shape, "__origin__", None) is str and name[0].isupper()
}


def longest(name: str) -> int:
    return next(meta.max_length for meta in SHAPES[name].__metadata__ if meta.max_length)


def test_every_shape_is_tried_here() -> None:
    assert set(SHAPES) == set(GOOD)


@pytest.mark.parametrize("name", GOOD)
def test_a_shape_takes_what_it_should_and_nothing_after_it(name: str) -> None:
    assert msgspec.convert(GOOD[name], SHAPES[name]) == GOOD[name]

    for bad in ([] if name in FREE else [GOOD[name] + "\n", "\n" + GOOD[name]]) + [
        GOOD[name] + "\x00",
        "x" * (longest(name) + 1),
    ]:
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert(bad, SHAPES[name])
