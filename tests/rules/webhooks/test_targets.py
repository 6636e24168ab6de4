"""Places where a webhook may go, from its address alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from custody.kit.outside_urls import loopback_allowed
from custody.webhooks.targets import BadWebhookUrl, check
from tests.fixtures.each import each

PUBLIC = "https://custody.example.com"
LOOPBACK = "http://localhost:3200"


@each(
    "url",
    [
        "https://hooks.example.com",
        "https://hooks.example.com:8443/in?a=b%20c",
        "https://8.8.8.8/",
        "https://[2606:4700::1111]/",
    ],
)
def test_a_public_https_address_is_kept_as_it_is(url: str) -> None:
    assert check(url, public_url=PUBLIC) == url
    assert check(url, public_url=LOOPBACK) == url


@each(
    "url", ["http://localhost:9/", "http://127.0.0.1/", "http://[::1]:9/", "https://localhost/", "http://a.localhost/"]
)
def test_loopback_is_a_target_where_the_service_is_there_too(url: str) -> None:
    assert check(url, public_url=LOOPBACK) == url
    with pytest.raises(BadWebhookUrl):
        check(url, public_url=PUBLIC)


@each("public_url", [PUBLIC, LOOPBACK])
@each(
    "url",
    [
        "http://hooks.example.com/",
        "https://10.1.2.3/",
        "https://172.31.0.1/",
        "https://192.168.0.1/",
        "https://169.254.169.254/",
        "https://168.63.129.16/",
        "https://[fd00:ec2::254]/",
        "https://0.0.0.0/",
        "https://host/",
        "https://host.internal/",
        "https://host.home.arpa/",
        "http://10.0.0.1/",
        "https://a@b.example.com",
    ],
)
def test_a_private_network_address_is_never_allowed(url: str, public_url: str) -> None:
    with pytest.raises(BadWebhookUrl):
        check(url, public_url=public_url)


@given(
    st.ip_addresses(v=4, network="10.0.0.0/8")
    | st.ip_addresses(v=4, network="192.168.0.0/16")
    | st.ip_addresses(v=4, network="127.0.0.0/8")
    | st.ip_addresses(v=4, network="169.254.0.0/16")
)
def test_no_address_of_a_private_network_is_a_target_in_public(address: object) -> None:
    with pytest.raises(BadWebhookUrl):
        check(f"https://{address}/", public_url=PUBLIC)


def test_a_refusal_does_not_repeat_the_address() -> None:
    with pytest.raises(BadWebhookUrl) as refused:
        check("https://user:hunter2@hooks.example.com/", public_url=PUBLIC)

    assert "hunter2" not in str(refused.value)


@each(
    ("public_url", "allowed"),
    [
        (LOOPBACK, True),
        ("http://127.0.0.1:3200", True),
        ("https://[::1]", True),
        ("http://a.localhost", True),
        (PUBLIC, False),
        ("http://10.0.0.1:3200", False),
        ("http://custody.example.com", False),
    ],
)
def test_a_deployment_is_on_loopback_by_its_own_address(public_url: str, allowed: bool) -> None:
    assert loopback_allowed(public_url) is allowed
