"""A command records only the audit actions that it declares."""

import pytest

from custody.worker.audited import UndeclaredAction, only, vet


def test_a_declared_action_may_be_recorded() -> None:
    with only(frozenset({"tx.signed"})):
        assert vet("tx.signed") == "tx.signed"


def test_another_action_is_refused() -> None:
    with only(frozenset({"tx.signed"})), pytest.raises(UndeclaredAction, match=r"tx\.denied"):
        vet("tx.denied")


def test_outside_of_a_command_nothing_may_be_recorded() -> None:
    with only(frozenset({"tx.signed"})):
        pass

    with pytest.raises(UndeclaredAction):
        vet("tx.signed")
