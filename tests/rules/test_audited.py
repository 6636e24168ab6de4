"""A command records only the audit actions that it declares."""

import pytest

from custody.worker.audited import UndeclaredAction, declared, only


def test_a_declared_action_may_be_recorded() -> None:
    with only(frozenset({"tx.signed"})):
        assert declared("tx.signed") == "tx.signed"


def test_another_action_is_refused() -> None:
    with only(frozenset({"tx.signed"})), pytest.raises(UndeclaredAction, match=r"tx\.denied"):
        declared("tx.denied")


def test_outside_of_a_command_nothing_may_be_recorded() -> None:
    with only(frozenset({"tx.signed"})):
        pass

    with pytest.raises(UndeclaredAction):
        declared("tx.signed")
