"""Fixtures of the console's tests."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import keyring
import keyring.backends.fail
import pytest
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.image import SVGImageSnapshotExtension

from tests.console.entering import Waits
from tests.console.waiting import cautious
from tests.fixtures.callers import Agent, Tenant
from tests.fixtures.hooked import receivers
from tests.fixtures.people import Person, member
from tests.fixtures.server import Service
from tests.outside.evm_node import EvmNode

__all__ = ("receivers",)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A configuration folder of this test's own."""
    return tmp_path / "config"


@pytest.fixture
def pictures(snapshot: SnapshotAssertion, evm_node: EvmNode) -> SnapshotAssertion:
    """Compare a picture with the kept one; `make snapshots` keeps new ones."""
    # An order's pane names the fee, and a fee of other length breaks its line elsewhere.
    evm_node.sink_fees()
    return snapshot.use_extension(SVGImageSnapshotExtension)


@pytest.fixture(autouse=True)
def no_keys() -> Iterator[None]:
    """No keyring of the machine that the tests run on is looked into."""
    before = keyring.get_keyring()
    keyring.set_keyring(keyring.backends.fail.Keyring())
    yield
    keyring.set_keyring(before)


@pytest.fixture
def waits() -> Waits:
    """The time between polls, which the test lets pass."""
    return Waits()


@pytest.fixture
def admin(service: Service, tenant: Tenant) -> Iterator[Person]:
    """An admin of this test's tenant, signed in in a browser."""
    with closing(member(service, tenant, "admin")) as somebody:
        yield somebody


@pytest.fixture
def agent(tenant: Tenant) -> Agent:
    """An agent of whom every order waits."""
    return cautious(tenant)
