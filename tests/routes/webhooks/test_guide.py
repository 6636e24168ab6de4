"""The receiver's example on the page, tried on what is really sent; and a foreign library on the same."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from standardwebhooks import Webhook

from tests.fixtures.eventually import eventually
from tests.fixtures.people import Person
from tests.routes.webhooks.receivers import Received, Receiver, running_receiver

PAGE = Path(__file__).parents[3].joinpath("docs/webhooks.md").read_text()
Judge = Callable[[str, dict[str, str], bytes], bool]


@pytest.fixture
def secret_and_delivery(as_owner: Person) -> Iterator[tuple[str, Received]]:
    """A secret, and a delivery that was signed with it."""
    with running_receiver() as receiver:
        made = as_owner.ok("POST", "/webhooks", {"url": receiver.url()})
        as_owner.ok("POST", f"/webhooks/{made['id']}/test")
        yield made["secret"], _first(receiver)


def _first(receiver: Receiver) -> Received:
    found: list[Received] = eventually(lambda: list(receiver.received))
    return found[0]


def example(page: str) -> Judge:
    """The page's function."""
    written: dict[str, Any] = {}
    exec(re.findall(r"```python\n(.*?)```", page, re.S)[0], written)
    is_genuine: Judge = written["is_genuine"]
    return is_genuine


def test_the_example_takes_what_is_genuine_and_nothing_else(secret_and_delivery: tuple[str, Received]) -> None:
    is_genuine = example(PAGE)
    secret, received = secret_and_delivery

    assert is_genuine(secret, received.headers, received.body)
    assert not is_genuine(secret, received.headers, received.body + b" ")
    assert not is_genuine("whsec_AAAA", received.headers, received.body)
    assert not is_genuine(secret, {**received.headers, "webhook-timestamp": "1700000000"}, received.body)
    for name in ("webhook-id", "webhook-signature"):
        assert not is_genuine(secret, {**received.headers, name: "v1,x"}, received.body)


def test_a_library_for_standard_webhooks_takes_it(secret_and_delivery: tuple[str, Received]) -> None:
    secret, received = secret_and_delivery

    assert Webhook(secret).verify(received.body, received.headers)["event"] == "webhook.test"
