"""The WebCrypto client of docs/wallets.md in a real browser."""

import pytest

from tests.fixtures.callers import Agent
from tests.fixtures.people import Person
from tests.fixtures.server import Service
from tests.outside.browser import browser_page
from tests.routes.vault.test_imports import evm_key
from tests.routes.vault.test_imports_page import SCRIPT, call_of

pytestmark = pytest.mark.long


def test_a_browser_seals_a_key_that_the_signer_opens(service: Service, as_owner: Person, agent: Agent) -> None:
    key, address = evm_key()
    with browser_page(service.url) as visit:
        visit.page.goto("/health")

        said = visit.page.evaluate(f"async () => {{ {SCRIPT}\nreturn {call_of(service, as_owner, agent, key)}; }}")

    assert said["walletAddress"] == address
