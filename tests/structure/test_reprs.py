"""Nothing that holds a secret shows it when it is printed: in a trace, a log line, a failed assertion."""

import importlib
import pkgutil
from collections.abc import Iterator

import msgspec

import api
import custody
import identity
import ops
import proxy_addon
import scheduler
import signer
from tests.fixtures.each import each

CANARY = "canary-of-a-secret"
NAMES = frozenset(
    {
        "token",
        "access_token",
        "refresh_token",
        "oauth_refresh_token",
        "code",
        "codes",
        "recovery_codes",
        "device_code",
        "secret",
        "app_secret",
        "signing_secret",
        "key",
        "api_key",
        "api_key_hash",
        "nonce",
        "value",
        "credential",
        "data",
        "seed",
        "password",
        "smtp_url",
        "sms_url",
        "database_url",
    }
)
# What has such a name and is no secret: ids, hashes, amounts, calldata, codes of errors, numbers of transactions.
HARMLESS = {
    "AuditPage.data",
    "Pending.code",
    "RemediationResult.code",
    "WalletOutcome.code",
    "PolicyRateLimited.code",
    "PolicyRefused.code",
    "ApprovalRefused.code",
    "Guard.credential",
    "PolicyViolation.value",
    "OrderEvent.value",
    "Inner.data",
    "Inner.value",
    "Site.value",
    "_Emitted.data",
    "ConditionConfig.value",
    "DnsRecord.value",
    "Domain.token",
    "Approval.value",
    "EvmOrder.value",
    "EvmOrder.data",
    "EvmOrder.nonce",
    "TransferOrder.value",
    "TransferOrder.token",
    "TokenBalance.token",
    "TokenRollup.token",
    "WalletAction.token",
    "OwnInput.key",
    "TransferAction.value",
    "TransferAction.token",
    "PendingTransfer.code",
    "RejectedTransfer.code",
    "ThrottledTransfer.code",
    "OneCall.value",
    "OneCall.data",
    "Throttling.code",
    "VotesMissing.code",
    "ProposedCalls.code",
    "RejectedCalls.code",
    "ThrottledCalls.code",
    "TransferQuote.value",
    "TransferQuote.token",
    "EvmTransaction.value",
    "EvmTransaction.data",
    "EvmTransaction.nonce",
    "SolanaOrder.value",
    "TypedDataBody.value",
    "TypedDataOrder.value",
    "Instruction.data",
    "_Value.value",
    "_Account.data",
    "_Answer.value",
    "_EvmPart.value",
    "_EvmPart.data",
    "_Validity.value",
    "Followed.nonce",
    "_Figures.nonce",
    "_Failure.code",
    "_Failure.data",
    "Failed.code",
    "Slot.nonce",
    "Question.key",
    "Question.nonce",
    "PendingTransaction.value",
    "RecentTransaction.value",
    "Transaction.data",
    "TransactionSummary.value",
    "TransactionSummary.nonce",
    "ListedTransaction.data",
    "Draft.value",
    "Draft.data",
    "Draft.nonce",
    "NonceRequest.nonce",
    "Final.nonce",
    "CreateCredentialRoute.secret",
    "DeleteSecret.secret",
    "RotateSecret.secret",
    "RegisteredTenant.api_key_hash",
    "RevokeAppSecret.secret",
    "RevokePlatformKey.key",
    "RevokeSigningKey.key",
    "RevokeApiKey.key",
    "Number.code",
    "Refusal.code",
    "RevokeApiKeyIn.key",
    "SiweMessage.nonce",
    "Signature.value",
}


def structs() -> Iterator[type[msgspec.Struct]]:
    """Every struct of the processes that see secrets of people, tenants and the operator."""
    packages = (custody, signer, identity, api, scheduler, proxy_addon, ops)
    names = {package.__name__ for package in packages}
    for package in packages:
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not module.name.endswith("__main__") and ".cli" not in module.name:
                importlib.import_module(module.name)
    waiting = [msgspec.Struct]
    while waiting:
        for kind in waiting.pop().__subclasses__():
            waiting.append(kind)
            if kind.__module__.partition(".")[0] in names:
                yield kind


def with_secrets() -> list[tuple[type[msgspec.Struct], str]]:
    found = {(kind, name) for kind in structs() for name in kind.__struct_fields__ if name in NAMES}
    return sorted(found, key=lambda pair: (pair[0].__module__, pair[0].__name__, pair[1]))


def fields_of(kind: type) -> tuple[str, ...]:
    return kind.__struct_fields__ if issubclass(kind, msgspec.Struct) and kind is not msgspec.Struct else ()


def name_of(kind: type[msgspec.Struct], field: str) -> str:
    """The field by the struct that declares it: what is harmless there is harmless in every struct made from it."""
    declares = [each for each in kind.__mro__ if field in fields_of(each)][-1]
    return f"{declares.__name__}.{field}"


@each(("kind", "field"), with_secrets(), ids=lambda part: getattr(part, "__name__", part))
def test_a_secret_is_not_printed(kind: type[msgspec.Struct], field: str) -> None:
    # Constructing looks at no types.
    made = kind(**{name: CANARY if name == field else None for name in kind.__struct_fields__})

    assert (CANARY in repr(made)) == (name_of(kind, field) in HARMLESS)


def test_every_exception_is_needed() -> None:
    assert {name_of(kind, field) for kind, field in with_secrets()} >= HARMLESS
