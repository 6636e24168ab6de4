"""`custody receipt verify FILE --jwks FILE`: what a receipt proves, and what it does not."""

import sys
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from custody.receipts import verify
from custody.receipts.verify import NotValid, Unreadable, Verified

MAX_BYTES = 8 * 1024 * 1024
VALID, INVALID, UNREADABLE = 0, 1, 2
NOT_PROVEN = (
    "whether the transaction is on the chain: look up its hash at a node",
    "its fate after the receipt was issued",
    "the identity of the service: that depends on the source of the JWK set",
    "that its audit row is in the sealed log: `custody audit verify` checks that with an export",
)


def run(chosen: Namespace) -> int:
    """Check one file and say in words what holds: 0 valid, 1 not valid, 2 nothing could be checked."""
    try:
        found = verify.verify(_read(chosen.file), _read(chosen.jwks))
        same = None if chosen.policies is None else verify.judged_by(found.receipt, _read(chosen.policies))
    except Unreadable as problem:
        print(f"custody: {problem}", file=sys.stderr)
        return UNREADABLE
    except NotValid as problem:
        print(f"NOT VALID: {problem}.")
        return INVALID
    for line in _report(found, same):
        # What agents wrote stands in a receipt too, and a terminal would obey its control characters.
        print("".join(letter if letter.isprintable() else "?" for letter in line))
    return INVALID if same is False else VALID


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as problem:
        raise Unreadable(f"{path}: {problem.strerror}") from None
    if len(content) > MAX_BYTES:
        raise Unreadable(f"{path} is too large for a receipt")
    return content


def _report(found: Verified, same: bool | None) -> Iterator[str]:
    receipt = found.receipt
    yield f"VALID: signed by {receipt['issuer']} with its key {found.kid} on {receipt['issuedAt']}."
    yield ""
    yield "Proven: the signer of that service states"
    yield f"  - the wallet {receipt['wallet']} of agent {receipt['agentId']} (tenant {receipt['tenantId']})"
    yield f"    signed transaction {receipt['txId']}, kind {receipt['kind']};"
    if receipt["txHash"]:
        yield f"  - its hash is {receipt['txHash']}, on {receipt['caip2']};"
    yield "  - the effects of its bytes:"
    for effect in receipt["effects"]:
        yield f"      {_effect(effect)}"
    yield f"  - version {receipt['policyVersion']} of the policies judged it, hash {receipt['policyHash']}:"
    for result in receipt["policyResults"]:
        yield f"      {'passed' if result['passed'] else 'FAILED'}  {result['type']}: {result['reason']}"
    for budget in receipt["budgets"]:
        yield f"  - of {budget['limit']} {budget['asset']} per {budget['window']}, {budget['before']} were spent before"
        yield f"    and {budget['after']} with it;"
    yield from _authorization(receipt.get("authorization"))
    yield from _approval(receipt["approval"])
    for user, key in found.votes:
        yield f"  - {user} voted for it with the key of fingerprint {key}: checked here, without the signer's word;"
    if same is not None:
        yield f"  - the policies that you gave are {'the ones' if same else 'NOT the ones'} that judged it."
    yield ""
    yield "Taken from its database, and proven by nothing else:"
    yield f"  - signed on {receipt['signedAt']}{_approved_on(receipt['approval'])};"
    yield f"  - its audit row is number {receipt['audit']['seq']}{_place(receipt['audit'])};"
    yield f"  - its status was {receipt['status']} when the receipt was issued."
    yield ""
    yield "Not proven:"
    yield from (f"  - {line}" for line in NOT_PROVEN)


def _effect(effect: dict[str, Any]) -> str:
    words = [f"{effect['kind']} of {effect['amount']} {effect['asset'] or ''}".rstrip()]
    words += [f"{name} {effect[name]}" for name in ("from", "to", "spender") if effect.get(name)]
    return ", ".join(words) + (" (unlimited)" if effect.get("unlimited") else "")


def _authorization(found: dict[str, Any] | None) -> Iterator[str]:
    if found is not None:
        through = f" as key quorum {found['quorum']}" if found["quorum"] else ""
        yield f"  - authorised by {', '.join(found['signers'])}{through};"


def _approval(approval: dict[str, Any] | None) -> Iterator[str]:
    if approval is None:
        yield "  - no person had to approve it."
    else:
        yield f"  - {approval['approvedBy']} approved it, approval {approval['id']}."


def _approved_on(approval: dict[str, Any] | None) -> str:
    return "" if approval is None else f", approved on {approval['approvedAt']}"


def _place(audit: dict[str, Any]) -> str:
    if audit["logIndex"] is None:
        return ", not sealed at that time"
    return f", index {audit['logIndex']} in the log covered by the checkpoint of size {audit['checkpointSize']}"
