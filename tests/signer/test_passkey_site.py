"""The site that passkeys of a deployment belong to, by the address it has."""

import pytest

from identity.people.webauthn_answers import site_of


@pytest.mark.parametrize(
    ("address", "rp_id", "origins"),
    [
        ("https://custody.example.com", "custody.example.com", ["https://custody.example.com"]),
        ("https://custody.example.com:443", "custody.example.com", ["https://custody.example.com"]),
        ("https://Custody.Example.com:8443/app", "custody.example.com", ["https://custody.example.com:8443"]),
        ("http://custody.example.com:443", "custody.example.com", ["http://custody.example.com:443"]),
        ("http://localhost:3200", "localhost", ["http://localhost:3200"]),
        ("http://127.0.0.1:3200", "localhost", ["http://127.0.0.1:3200", "http://localhost:3200"]),
        ("http://[::1]:3200", "localhost", ["http://[::1]:3200", "http://localhost:3200"]),
        ("http://localhost", "localhost", ["http://localhost"]),
    ],
)
def test_the_site_of_an_address(address: str, rp_id: str, origins: list[str]) -> None:
    site = site_of(address)

    assert (site.rp_id, site.origins) == (rp_id, origins)
