"""The path of an order can be followed by jumping from name to name: steps are methods, and plain data goes between."""

import msgspec
import pytest

from signer import evaluate, record, signing_attempt
from signer.orders import evm, evm_replacement, kind, solana, typed_data
from signer.orders.built_in import KINDS
from signer.orders.kind import AnyKind
from signer.wallets.built_in import KEYS

STEPS = ("check", "effects", "finish", "sign", "signed_effects")
MODULES = (signing_attempt, evaluate, record, kind, evm, evm_replacement, solana, typed_data)
STRUCTS = sorted(
    {
        each
        for module in MODULES
        for each in vars(module).values()
        if isinstance(each, type) and issubclass(each, msgspec.Struct) and each.__module__.startswith("signer.")
    },
    key=lambda each: each.__name__,
)


@pytest.mark.parametrize("each", KINDS.by_order.values(), ids=lambda each: type(each).__name__)
def test_a_kind_has_every_step_in_its_own_class(each: AnyKind) -> None:
    assert [step for step in STEPS if step not in vars(type(each))] == []
    assert KEYS[each.keys.family] is each.keys


@pytest.mark.parametrize("struct", STRUCTS, ids=lambda struct: struct.__name__)
def test_no_struct_of_the_path_holds_a_function(struct: type[msgspec.Struct]) -> None:
    assert [name for name, kind in struct.__annotations__.items() if "Callable" in str(kind)] == []
    assert struct.__struct_config__.frozen
