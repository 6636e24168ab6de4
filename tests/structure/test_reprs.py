"""Nothing that holds a secret shows it when it is printed: in a trace, a log line, a failed assertion."""

import importlib
import pkgutil
from collections.abc import Iterator

import msgspec
import pytest

import api
import custody
import signer

CANARY = "canary-of-a-secret"
NAMES = frozenset({
    "token", "access_token", "refresh_token", "oauth_refresh_token", "code", "codes", "recovery_codes", "device_code",
    "secret", "app_secret", "signing_secret", "key", "api_key", "api_key_hash", "nonce", "value", "credential", "data",
    "seed", "password", "smtp_url", "sms_url", "database_url",
})  # fmt: skip
# What has such a name and is no secret: ids, hashes, amounts, calldata, codes of errors, numbers of transactions.
HARMLESS = {
    "AuditPage.data",
    "Approval.value", "EvmOrder.value", "EvmOrder.data", "EvmOrder.nonce", "EvmTransaction.value",
    "EvmTransaction.data", "EvmTransaction.nonce", "SolanaOrder.value", "TypedDataOrder.value", "Instruction.data",
    "_Value.value", "_Account.data", "_Answer.value",
    "_EvmPart.value", "_EvmPart.data", "_Validity.value", "EvmReplacement.value", "EvmReplacement.data",
    "EvmReplacement.nonce",
    "Followed.nonce",
    "_Figures.nonce", "_Failure.code", "_Failure.data", "Failed.code", "Slot.nonce", "Question.key", "Question.nonce",
    "Record.value", "Record.data", "Record.nonce", "PendingTransaction.value", "Transaction.value", "Transaction.data",
    "Transaction.nonce", "Built.value", "Built.data", "Draft.nonce", "Final.nonce", "CreateCredentialRoute.secret",
    "DeleteSecret.secret", "RotateSecret.secret", "RegisteredTenant.api_key_hash",
    "RevokeAppSecret.secret", "RevokePlatformKey.key", "RevokeSigningKey.key",
    "SiweMessage.nonce", "Signature.value",
}  # fmt: skip


def structs() -> Iterator[type[msgspec.Struct]]:
    """Every struct of the processes that see secrets of people and tenants."""
    for package in (custody, signer, api):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not module.name.endswith("__main__") and ".cli" not in module.name:
                importlib.import_module(module.name)
    waiting = [msgspec.Struct]
    while waiting:
        for kind in waiting.pop().__subclasses__():
            waiting.append(kind)
            if kind.__module__.partition(".")[0] in {"custody", "signer", "api"} and ".cli" not in kind.__module__:
                yield kind


def with_secrets() -> list[tuple[type[msgspec.Struct], str]]:
    found = {(kind, name) for kind in structs() for name in kind.__struct_fields__ if name in NAMES}
    return sorted(found, key=lambda pair: (pair[0].__module__, pair[0].__name__, pair[1]))


@pytest.mark.parametrize(("kind", "field"), with_secrets(), ids=lambda part: getattr(part, "__name__", part))
def test_a_secret_is_not_printed(kind: type[msgspec.Struct], field: str) -> None:
    # Constructing looks at no types.
    made = kind(**{name: CANARY if name == field else None for name in kind.__struct_fields__})

    assert (CANARY in repr(made)) == (f"{kind.__name__}.{field}" in HARMLESS)


def test_every_exception_is_needed() -> None:
    assert {f"{kind.__name__}.{field}" for kind, field in with_secrets()} >= HARMLESS
