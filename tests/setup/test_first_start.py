"""The walk-through of the first start takes back what it allows the proxy."""

import asyncio
import ssl
import stat
from datetime import timedelta
from pathlib import Path

import httpx
import pytest
from cryptography import x509

from custody.kit import clock
from ops import places
from ops.demo.first_start import upstream_allowed
from ops.settings import Settings, load


def settings(home: places.Home, **given: str) -> Settings:
    return load({"SERVICE_HOME": str(home.path), **given})


async def test_a_proxy_may_call_one_port_and_trust_one_certificate(home: places.Home) -> None:
    found = settings(home)

    async with upstream_allowed(found, home) as upstream:
        assert upstream is not None
        trusted = Path(found.environment["SERVICE_PROXY_EXTRA_CA_FILE"])
        assert found.environment["SERVICE_PROXY_ALLOW_PRIVATE_HOSTS"] == f"localhost:{upstream.port}"
        assert trusted.read_text() == upstream.certificate
        assert stat.S_IMODE(trusted.stat().st_mode) == 0o600
        assert trusted.stat().st_uid == (home.uid_of("proxy") or trusted.stat().st_uid)


async def test_afterwards_nothing_of_it_is_left(home: places.Home) -> None:
    found = settings(home, SERVICE_PROXY_ALLOW_PRIVATE_HOSTS="db.internal.example.com")
    before = dict(found.environment)

    async with upstream_allowed(found, home) as upstream:
        assert upstream is not None
        given = found.environment["SERVICE_PROXY_ALLOW_PRIVATE_HOSTS"]
        assert given == f"db.internal.example.com,localhost:{upstream.port}"

    assert found.environment == before
    assert list(home.file("proxy").iterdir()) == []


async def test_authorities_trusted_by_the_operator_are_left_alone(home: places.Home, tmp_path: Path) -> None:
    found = settings(home, SERVICE_PROXY_EXTRA_CA_FILE=str(tmp_path / "company.pem"))
    before = dict(found.environment)

    async with upstream_allowed(found, home) as upstream:
        assert upstream is None
        assert found.environment == before


async def test_its_certificate_vouches_for_itself_alone_and_for_an_hour(home: places.Home) -> None:
    async with upstream_allowed(settings(home), home) as upstream:
        assert upstream is not None
        made = x509.load_pem_x509_certificate(upstream.certificate.encode())

    assert made.extensions.get_extension_for_class(x509.BasicConstraints).value.ca is False
    assert made.not_valid_after_utc - clock.now() <= timedelta(hours=1)


async def test_the_api_says_back_what_it_was_shown_and_is_gone_afterwards(home: places.Home) -> None:
    async with upstream_allowed(settings(home), home) as upstream:
        assert upstream is not None
        trust = ssl.create_default_context(cadata=upstream.certificate)
        async with httpx.AsyncClient(verify=trust, trust_env=False) as client:
            answer = await client.get(f"https://{upstream.host}/v1/hello", headers={"Authorization": "Bearer key"})
            with_none = await client.get(f"https://{upstream.host}/v1/hello")

    assert answer.json() == {"hello": "agent", "authorization": "Bearer key"}
    assert with_none.json()["authorization"] == ""
    assert upstream.shown == ["Bearer key", ""]
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", upstream.port)
