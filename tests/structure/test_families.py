"""The lists that know chain families and kinds of orders know the same ones."""

import typing

from api.areas.funds.read import TOKENS
from api.areas.simulation import past
from custody.chains.built_in import FAMILIES, WALLETS
from custody.chains.family import SigningFamily
from custody.chains.kinds import Kind
from custody.chains.nodes import NODES
from custody.chains.orders import ORDERS
from custody.protocol.signer.agents import WalletAddresses
from custody.transactions.types import TransactionQuery
from scheduler.tx_tracking.follow import LOOKS
from signer.orders.built_in import KINDS
from signer.wallets.built_in import BORN_WITH, KEYS
from tests.fixtures.imports import PACKAGES, ROOT, closure, modules_of

KIND_NAMES = typing.get_args(Kind)
# Of Bitcoin an agent has a root once it asked for an address, and no node is asked.
OF_WALLETS = [kind for family in WALLETS.values() for kind in family.order_kinds]
SIGNING = [name for name, family in FAMILIES.items() if isinstance(family, SigningFamily)]


def test_every_family_with_wallets_has_keys_and_an_address() -> None:
    assert list(BORN_WITH) == list(WALLETS)
    assert set(KEYS) == set(SIGNING)
    assert WalletAddresses.__struct_fields__ == tuple(WALLETS)


def test_a_family_has_nodes_in_every_list_or_in_none() -> None:
    assert set(NODES) == set(LOOKS) == set(TOKENS) <= set(WALLETS)
    asked = {kind for family in NODES for kind in WALLETS[family].order_kinds}
    assert asked | set(FAMILIES["bitcoin"].order_kinds) == set(past._SUBJECTS) == set(KIND_NAMES)


def test_every_kind_of_order_has_its_class() -> None:
    assert tuple(kind for family in FAMILIES.values() for kind in family.order_kinds) == KIND_NAMES
    assert tuple(ORDERS) == KIND_NAMES
    assert {kind.name for kind in KINDS.by_order.values()} == set(KIND_NAMES)
    assert set(ORDERS.values()) <= set(KINDS.by_order)


def test_the_filter_takes_the_kinds_that_the_families_list() -> None:
    named, _ = typing.get_args(typing.get_type_hints(TransactionQuery)["kind"])

    assert typing.get_args(named) == KIND_NAMES
    assert set(OF_WALLETS) < set(KIND_NAMES)


def test_whatever_runs_and_asks_for_families_hands_them_in() -> None:
    """A program that forgets it would refuse every address and every chain."""
    asked = ROOT / "custody/chains/families.py"
    programs = {
        module: file.read_text()
        for package in PACKAGES
        for module in modules_of(package)
        if (file := ROOT / f"{module.replace('.', '/')}.py").exists() and '__name__ == "__main__"' in file.read_text()
    }
    asking = {module for module in programs if asked in closure([module])}

    assert asking >= {"api.__main__", "signer.__main__", "identity.verify"}
    assert [module for module in asking if "families.hand_in(" not in programs[module]] == []
