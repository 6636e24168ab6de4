"""An order between its read and its write: each thing that must hold for a signature, taken away one at a time."""

import datetime as dt
import uuid
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from decimal import Decimal
from pathlib import Path
from typing import Any

import coincurve
import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from eth_account import Account

from custody.chains import chains_file
from custody.chains.evm.address import address_of
from custody.chains.evm.family import EVM_NATIVE, coin_of
from custody.chains.evm.orders import EvmOrder, EvmPrepared
from custody.kit.act import Credential
from custody.kit.answers import Answered
from custody.kit.callers import IdempotencyKey, Origin
from custody.kit.errors import CustodyError, Frozen
from custody.kit.quotas import Limits, Quotas
from custody.kit.refs import AgentRef
from custody.protocol.refusals import BadProof, DatabaseRolledBack, IdempotencyMismatch, TokenRevoked
from custody.protocol.signer.order_refusals import (
    AgentAbsent,
    AuthorityTampered,
    KeyTampered,
    PolicyTampered,
    ReferenceTaken,
)
from custody.protocol.signer.outcomes import NeedsPreparation, Queued, Refused, Signed
from custody.worker.audited import only
from custody.worker.call import Call
from custody.worker.judging import JUDGING_MAC, JudgingSeals
from custody.worker.keyring import Keyring
from custody.worker.proofs import Proofs
from custody.worker.proven import ProvenAgent, ProvenTenant
from custody.worker.sealing import Context, Sealer, Tampered, fields
from signer import broken_quorums
from signer.acknowledged_orders import AcknowledgedOrders
from signer.bitcoin_seals import ACCOUNT_MAC, account_content
from signer.broken_quorums import Break, Read
from signer.direct import Direct
from signer.evaluate import evaluate
from signer.ledger import Charge, Facts, PsbtFacts, PsbtQuestion, Record, Slot
from signer.orders.built_in import KINDS
from signer.orders.evm import EVM_TRANSACTION, EvmTransactionKind
from signer.orders.kind import Inputs
from signer.policies import PolicySeals, RuleRow
from signer.quotas import TenantQuotas
from signer.rollback_journal import Heads, RolledBack
from signer.set_seals import SetSeals
from signer.signing_attempt import Authorization, Claim, SigningAttempt, ToWrite, Way
from signer.signing_state import SigningState
from signer.statement_keys import StatementKey, StatementKeys
from signer.statements import APPROVAL_MAC, approval_content
from signer.wallets.evm import EvmKeys

NOW = dt.datetime(2026, 5, 4, 12, 30, 15, tzinfo=dt.UTC)
HOUR = NOW.replace(minute=0, second=0)
REF = AgentRef("acme", "payer")
KEY = coincurve.PrivateKey(bytes(range(1, 33)))
ADDRESS = address_of(KEY.public_key.format(compressed=False))
STRANGER = bytes(range(2, 34))
PREPARED = EvmPrepared(pending_nonce=0, gas_limit=21_000, max_fee=10**9, priority_fee=1)
AGENT = ProvenAgent("acme", "payer", "first", 3)
TENANT = ProvenTenant(tenant="acme", standing=Credential("tenant_key", b"k" * 32), principal="tenant-key:abc")
KEPT = IdempotencyKey("POST /vault/{agentId}/sign", b"k" * 32, b"f" * 32)
EARLIER = Signed("earlier", "evm", "0xhash", "0xsignature", b"raw", 1, "eip155:1", broadcast=False)
ENCODED = msgspec.msgpack.encode(EARLIER)
UNASKED: Any = (None, None)
# No call that is known.
UNREAD = "0xdeadbeef"
CLAIM = Claim("approval", NOW - dt.timedelta(minutes=5))


class Claiming(Direct):
    """An order that a person approved."""

    is_approved = True
    claim = CLAIM


class Shown(Direct):
    """An order with which signers were shown, who bind it to a rule or are not what was sealed."""

    def __init__(self, signer: SigningState, problem: Exception | None = None) -> None:
        super().__init__(signer)
        self._problem = problem

    def authorize(self, *given: Any) -> Authorization:
        self.given = given
        if self._problem is not None:
            raise self._problem
        return Authorization('{"by":"signer"}', ("cap",))


class Counting(Direct):
    """An order whose quorums are looked at."""

    def count_votes(self, attempt: Any, facts: Any, quorums: Any, read: Any) -> None:
        self.given, self.quorums = (attempt, facts, read), list(quorums)


class Votes(msgspec.Struct, frozen=True):
    """Votes that were counted."""

    votes: frozenset[tuple[str, str]]

    def voters(self) -> None:
        """Leave nothing for the write to look at."""

    def text(self) -> str:
        """Say nothing for receipts."""
        return "[]"


@pytest.fixture
def signer(tmp_path: Path) -> Iterator[SigningState]:
    """The real parts of a signer, of which the database is never asked."""
    sealer = Sealer(Keyring({1: bytes([1]) * 32}))
    heads, acknowledged = Heads(tmp_path / "heads"), AcknowledgedOrders(tmp_path / "acknowledged")
    heads.load()
    with only(frozenset({"tx.signed", "tx.approved", "tx.queued", "tx.refused"})):
        yield SigningState(
            pool=None,
            sealer=sealer,
            proofs=Proofs(None, sealer, *UNASKED),
            judging=JudgingSeals(sealer),
            public_url="https://custody.example",
            statement_keys=StatementKeys({"receipt": [StatementKey("receipt", Ed25519PrivateKey.generate())]}),
            policies=PolicySeals(sealer, heads),
            sets=SetSeals(sealer, heads),
            chains=chains_file.load({}),
            kinds=KINDS,
            empty_policy="deny",
            quotas=TenantQuotas(None, Limits(everybody=Quotas(orders_per_day=10))),
            acknowledged=acknowledged,
        )
    heads.close()


def rule(kind: str, id: str = "limit", **config: Any) -> RuleRow:
    return RuleRow(id, kind, True, msgspec.json.encode(config).decode())


LIMIT = rule("spending-limit", maxPerDay="1000", maxPerWeek="5000")


def facts_of(signer: SigningState, *given: RuleRow, config: dict[str, Any] | None = None, **changed: Any) -> Facts:
    """An agent's state as the database has it, sealed as it should be; `changed` is what somebody wrote there since."""
    rules = list(given or (LIMIT,))
    secret = changed.pop("secret", KEY.secret)
    context = changed.pop("context", Context("acme", "agent", "payer", "evm", "first"))
    text, mac = signer.judging.seal("acme", 1, config) if config is not None else (None, None)
    whole = Facts(
        now=NOW,
        incarnation="first",
        token_epoch=3,
        ledger_version=7,
        policy_version=2,
        frozen=False,
        address=ADDRESS,
        agent_name="Payer",
        head=(2, len(rules), signer.policies.seal("acme", "payer", "first", 2, rules)),
        rules=msgspec.json.encode(rules).decode(),
        blob=signer.sealer.seal(secret, context),
        config_version=0 if config is None else 1,
        judging=text,
        judging_mac=mac,
        spend={},
        minutes=[],
        hours=[],
        highest_nonce=None,
        slot=None,
        idempotent=None,
    )
    return msgspec.structs.replace(whole, **changed)


def attempt_of(
    signer: SigningState,
    *,
    way: Way | None = None,
    caller: ProvenAgent | ProvenTenant = AGENT,
    key: IdempotencyKey | None = None,
    prepared: EvmPrepared | None = PREPARED,
    value: str = "10",
    **order: Any,
) -> SigningAttempt:
    asked = EvmOrder(**{"to": "0x" + "a1" * 20, "value": value, "broadcast": False, **order})
    draft = EVM_TRANSACTION.check(asked, Inputs(signer.chains, prepared))
    call: Any = Call(caller, Origin("request", "192.0.2.1", "curl"), key)
    way = way or Direct(signer)
    return SigningAttempt(ref=REF, tx_id="new", kind=EVM_TRANSACTION, draft=draft, call=call, way=way)


def go(signer: SigningState, attempt: SigningAttempt, facts: Facts | None, read: Read | None) -> Any:
    return evaluate(signer, attempt, facts, read, locked=False)


def judge(
    signer: SigningState, facts: Facts | None = None, *, read: Read | None = None, locked: bool = False, **attempt: Any
) -> Any:
    facts = facts_of(signer) if facts is None else facts
    return evaluate(signer, attempt_of(signer, **attempt), facts, read, locked=locked)


def refuses(problem: type[CustodyError]) -> AbstractContextManager[Any]:
    return pytest.raises(problem)


def test_an_order_within_the_rules_is_signed_by_the_wallet(signer: SigningState) -> None:
    step = judge(signer)

    assert isinstance(step, ToWrite)
    assert isinstance(step.outcome, Signed)
    assert (step.outcome.tx_id, step.outcome.chain_id, step.facts.ledger_version) == ("new", 1, 7)
    assert Account.recover_transaction(step.outcome.raw) == ADDRESS
    assert isinstance(step.record, Record)
    assert (step.record.told.status, step.record.told.action) == ("signed", "tx.signed")
    assert (step.record.spend.spend_assets, step.record.spend.spend_amounts) == ([coin_of(1)], ["10"])
    assert b"recordMac" in step.record.act.metadata.encode()


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"incarnation": "second"}, TokenRevoked),
        ({"token_epoch": 4}, TokenRevoked),
        ({"frozen": True}, Frozen),
        ({"idempotent": (b"other" * 6, ENCODED)}, IdempotencyMismatch),
    ],
)
def test_an_agent_that_is_not_as_it_was_gets_nothing(
    signer: SigningState, changed: dict[str, Any], problem: Any
) -> None:
    with refuses(problem):
        judge(signer, facts_of(signer, **changed), key=KEPT)


@pytest.mark.parametrize(("caller", "problem"), [(AGENT, BadProof), (TENANT, AgentAbsent)])
def test_an_agent_that_is_gone_gets_nothing(
    signer: SigningState, caller: ProvenAgent | ProvenTenant, problem: Any
) -> None:
    attempt = attempt_of(signer, caller=caller)
    with refuses(problem):
        go(signer, attempt, None, None)


def test_a_caller_without_an_agent_s_token_is_not_held_to_its_epoch(signer: SigningState) -> None:
    assert isinstance(judge(signer, facts_of(signer, token_epoch=9), caller=TENANT), ToWrite)


@pytest.mark.parametrize("changed", [{}, {"frozen": True}])
def test_a_repeated_key_gets_the_stored_answer_and_is_judged_no_more(
    signer: SigningState, changed: dict[str, Any]
) -> None:
    facts = facts_of(signer, idempotent=(KEPT.fingerprint, ENCODED), **changed)
    step = judge(signer, facts, key=KEPT)
    assert (step.answer, step.replayed) == (EARLIER, True)


def test_a_key_without_an_answer_yet_is_judged(signer: SigningState) -> None:
    kept = KEPT.fingerprint, None
    assert isinstance(judge(signer, facts_of(signer, idempotent=kept), key=KEPT), ToWrite)
    with refuses(IdempotencyMismatch):
        judge(signer, facts_of(signer, idempotent=(b"other" * 6, None)), key=KEPT)


def test_an_answer_to_a_key_is_none_to_a_request_without_one(signer: SigningState) -> None:
    step = judge(signer, facts_of(signer, idempotent=(KEPT.fingerprint, ENCODED)))
    assert isinstance(step, ToWrite)


def test_a_database_that_went_back_is_not_served(signer: SigningState) -> None:
    signer.changed_logs.add("acme")
    with refuses(DatabaseRolledBack):
        judge(signer, facts_of(signer, idempotent=(KEPT.fingerprint, ENCODED)), key=KEPT)


def test_an_order_beyond_the_quota_is_refused_but_not_one_that_was_counted_when_it_was_queued(
    signer: SigningState,
) -> None:
    held = signer.quotas.hold("acme", orders_per_day=10)
    with held as ten:
        ten.keep()
    with pytest.raises(CustodyError, match="orders"):
        judge(signer)
    assert isinstance(judge(signer, way=Claiming(signer)), ToWrite)
    earlier = attempt_of(signer).draft.digest, ENCODED
    assert judge(signer, facts_of(signer, action=earlier)).answer == EARLIER


def test_an_order_under_the_reference_of_another_is_refused(signer: SigningState) -> None:
    with refuses(ReferenceTaken):
        judge(signer, facts_of(signer, action=(b"d" * 32, ENCODED)))


def test_an_order_under_an_earlier_reference_is_answered_only_where_the_rules_hang_together(
    signer: SigningState,
) -> None:
    earlier = attempt_of(signer).draft.digest, ENCODED
    assert judge(signer, facts_of(signer, action=earlier)).replayed
    assert judge(signer, facts_of(signer, action=earlier, rules="[]")) is None


def seals_of(signer: SigningState) -> dict[str, dict[str, Any]]:
    """Each way in which what is judged by may not be what was sealed."""
    other = facts_of(signer, rule("spending-limit", maxPerDay="1000000"))
    return {
        "other rules": {"rules": other.rules},
        "no head": {"head": (None, None, None)},
        "the head of others": {"head": (2, 1, signer.policies.seal("other", "payer", "first", 2, [LIMIT]))},
        "the head of another agent": {"head": (2, 1, signer.policies.seal("acme", "other", "first", 2, [LIMIT]))},
        "the head of an agent before": {"head": (2, 1, signer.policies.seal("acme", "payer", "before", 2, [LIMIT]))},
        "another version": {"policy_version": 3},
        "a configuration that nobody sealed": {"config_version": 1, "judging": '{"uncoveredEffects":"allow"}'},
        "a configuration that is gone": {"config_version": 1},
        "the configuration of another tenant": dict(
            zip(("judging", "judging_mac"), signer.judging.seal("other", 1, {}), strict=True), config_version=1
        ),
        "the configuration of another version": {
            "judging": "{}",
            "judging_mac": signer.sealer.mac(JUDGING_MAC, "acme", fields("acme", 1, "{}")),
            "config_version": 2,
        },
    }


SEALS = (
    "other rules",
    "no head",
    "the head of others",
    "the head of another agent",
    "the head of an agent before",
    "another version",
    "a configuration that nobody sealed",
    "a configuration that is gone",
    "the configuration of another tenant",
    "the configuration of another version",
)


@pytest.mark.parametrize("what", SEALS)
def test_nothing_is_judged_by_what_was_not_sealed(signer: SigningState, what: str) -> None:
    changed = seals_of(signer)
    assert tuple(changed) == SEALS
    # Maybe it was just being changed; under the lock it was not.
    assert judge(signer, facts_of(signer, **changed[what])) is None
    with refuses(PolicyTampered):
        judge(signer, facts_of(signer, **changed[what]), locked=True)


def test_older_rules_are_not_judged_by_once_newer_ones_were_seen(signer: SigningState) -> None:
    signer.policies.heads.remember("acme", "payer", "first", 3)
    assert judge(signer) is None
    with refuses(PolicyTampered):
        judge(signer, locked=True)


@pytest.mark.parametrize(
    "problem",
    [Tampered(), RolledBack(), msgspec.DecodeError(), ValueError(), TypeError()],
    ids=lambda problem: type(problem).__name__,
)
def test_signers_that_are_not_what_was_sealed_authorise_nothing(signer: SigningState, problem: Any) -> None:
    assert judge(signer, way=Shown(signer, problem)) is None
    with refuses(AuthorityTampered):
        judge(signer, way=Shown(signer, problem), locked=True)


def test_signers_and_votes_are_looked_at_with_all_that_was_read(signer: SigningState) -> None:
    facts, shown, counting = facts_of(signer, config={"autoExpireSeconds": 99}), Shown(signer), Counting(signer)
    cap = facts_of(signer, LIMIT, rule("rate-limit", "cap", maxTxPerDay=100), config={"autoExpireSeconds": 99})
    authorised, voted = attempt_of(signer, way=shown), attempt_of(signer, way=counting)
    read = Read(Break(None, None, None), "[]")
    go(signer, authorised, cap, None)
    go(signer, voted, facts, read)

    assert shown.given[:2] == (authorised, cap)
    assert shown.given[2].auto_expire_seconds == 99
    assert counting.given == (voted, facts, read)


def test_tampering_is_told_to_the_operator(signer: SigningState, caplog: pytest.LogCaptureFixture) -> None:
    places: dict[str, dict[str, Any]] = {
        "policies refused": {"rules": "[]"},
        "wallet absent": {"address": ""},
        "key refused": {"blob": None},
    }
    found = {}
    for what, changed in places.items():
        with pytest.raises(CustodyError):
            judge(signer, facts_of(signer, **changed), locked=True)
        found[what] = caplog.records[-1]
    with refuses(AuthorityTampered):
        judge(signer, way=Shown(signer, Tampered()), locked=True)
    found["signers refused"] = caplog.records[-1]

    for what, record in found.items():
        assert (record.name, record.message) == ("signer.evaluate", what)
        assert (vars(record)["tenant"], vars(record)["agent"]) == ("acme", "payer")
    reasons = {what: vars(record).get("reason") for what, record in found.items()}
    assert reasons == dict.fromkeys(places) | {"policies refused": "Tampered", "signers refused": "Tampered"}


ACCOUNT = PsbtFacts(b"p" * 33, b"c" * 32, b"", None, None)


@pytest.mark.parametrize(
    ("changed", "signs"),
    [
        ({}, True),
        ({"account": "other"}, False),
        ({"account": ""}, False),
        ({"agent": "other"}, False),
        ({"tenant": "other"}, False),
        ({"incarnation": "before"}, False),
        ({"public_key": b"q" * 33}, False),
        ({"chain_code": b"d" * 32}, False),
    ],
    ids=str,
)
def test_no_psbt_is_judged_by_an_account_key_that_is_not_this_agent_s(
    signer: SigningState, changed: dict[str, Any], signs: bool
) -> None:
    of: dict[str, Any] = {"tenant": "acme", "agent": "payer", "incarnation": "first", "account": "savings"}
    of |= {"public_key": ACCOUNT.public_key, "chain_code": ACCOUNT.chain_code} | changed
    content = account_content(
        *(of[name] for name in ("tenant", "agent", "incarnation", "account")), *list(of.values())[4:]
    )
    sealed = msgspec.structs.replace(ACCOUNT, mac=signer.sealer.mac(ACCOUNT_MAC, of["tenant"], content))
    attempt = attempt_of(signer)
    draft = msgspec.structs.replace(attempt.draft, psbt=PsbtQuestion("savings", b"", [], []))
    attempt = msgspec.structs.replace(attempt, draft=draft)
    with nullcontext() if signs else refuses(KeyTampered):
        step = go(signer, attempt, facts_of(signer, psbt=sealed), None)
        assert isinstance(step.outcome, Signed)


def test_an_account_that_is_still_to_be_made_is_sealed_under_no_name(signer: SigningState) -> None:
    content = account_content("acme", "payer", "first", "", ACCOUNT.public_key, ACCOUNT.chain_code)
    sealed = msgspec.structs.replace(ACCOUNT, mac=signer.sealer.mac(ACCOUNT_MAC, "acme", content))
    assert isinstance(judge(signer, facts_of(signer, psbt=sealed)).outcome, Signed)


def test_a_wallet_that_is_made_when_it_is_asked_for_may_be_absent_until_then(signer: SigningState) -> None:
    class Late(EvmKeys):
        made_when_asked = True

    class LateKind(EvmTransactionKind):
        keys = Late()

        def effects(self, draft: Any, facts: Facts) -> Any:
            return super().effects(draft, msgspec.structs.replace(facts, address=ADDRESS))

    attempt = msgspec.structs.replace(attempt_of(signer, value="1001"), kind=LateKind())
    step = go(signer, attempt, facts_of(signer, address=""), None)
    assert isinstance(step.outcome, Refused)


def test_rules_of_signers_that_were_shown_bind_besides(signer: SigningState) -> None:
    cap = rule("spending-limit", "cap", maxPerTransaction="5")
    facts = facts_of(signer, LIMIT, RuleRow(cap.id, cap.type, False, cap.config))

    assert isinstance(judge(signer, facts).outcome, Signed)
    step = judge(signer, facts, way=Shown(signer))
    assert isinstance(step.outcome, Refused)
    assert step.record.asked.authorization_text == '{"by":"signer"}'


@pytest.mark.parametrize(
    "changed",
    [
        {"address": ""},
        {"blob": None},
        {"blob": b"no blob"},
        {"secret": STRANGER},
        {"secret": bytes(32)},
        {"context": Context("acme", "agent", "other", "evm", "first")},
        {"context": Context("other", "agent", "payer", "evm", "first")},
        {"context": Context("acme", "agent", "payer", "solana", "first")},
        {"context": Context("acme", "agent", "payer", "evm", "second")},
        {"context": Context("acme", "secret", "payer", "evm", "first")},
    ],
    ids=str,
)
def test_nothing_is_signed_by_a_key_that_is_not_this_wallet_s(signer: SigningState, changed: dict[str, Any]) -> None:
    with refuses(KeyTampered):
        judge(signer, facts_of(signer, **changed))


@pytest.mark.parametrize(
    ("spend", "value", "signs"),
    [
        ((990, 990), "10", True),
        ((991, 991), "10", False),
        ((0, 4990), "10", True),
        ((0, 4991), "10", False),
    ],
)
def test_an_order_counts_beside_what_was_spent(
    signer: SigningState, spend: tuple[int, int], value: str, signs: bool
) -> None:
    step = judge(signer, facts_of(signer, spend={EVM_NATIVE: spend}), value=value)
    assert isinstance(step.outcome, Signed) is signs
    assert isinstance(step.outcome, Refused) is not signs


def slot_of(amount: str, *, asset: str = coin_of(1), hours: int = 0, state: str = "open") -> Slot:
    return Slot(4, state, "before", {asset: Charge(amount, HOUR - dt.timedelta(hours=hours))})


@pytest.mark.parametrize(
    ("slot", "spend", "signs"),
    [
        # What it takes over was counted: its place counts once, and as the larger of the two.
        (slot_of("600"), (990, 990), True),
        (slot_of("600"), (1001, 1001), False),
        (slot_of("5"), (995, 995), True),
        (slot_of("5"), (996, 996), False),
        # A bucket of yesterday is no longer in the sum of the day, and one of last week in none.
        (slot_of("600", hours=25), (400, 1000), True),
        (slot_of("600", hours=25), (401, 1000), False),
        (slot_of("600", hours=25), (0, 5000), True),
        (slot_of("600", hours=25), (0, 5001), False),
        (slot_of("600", hours=24), (1000, 1000), True),
        (slot_of("600", hours=169), (400, 4400), True),
        (slot_of("600", hours=169), (400, 4401), False),
        (slot_of("600", hours=168), (0, 5000), True),
        # Of a slot that is sent nothing is taken over.
        (slot_of("600", state="seen"), (990, 990), True),
        (slot_of("600", state="seen"), (991, 991), False),
    ],
)
def test_a_slot_that_is_taken_over_does_not_count_twice(
    signer: SigningState, slot: Slot, spend: tuple[int, int], signs: bool
) -> None:
    facts = facts_of(signer, slot=slot, spend={EVM_NATIVE: spend, coin_of(1): spend})
    step = judge(signer, facts)
    assert isinstance(step.outcome, Signed) is signs


@pytest.mark.parametrize(("value", "signs"), [("1000", True), ("1001", False)])
@pytest.mark.parametrize("limits", [{"maxPerDay": "1000"}, {"maxPerWeek": "1000"}], ids=str)
def test_a_slot_that_no_sum_has_any_more_takes_nothing_from_it(
    signer: SigningState, limits: dict[str, str], value: str, signs: bool
) -> None:
    facts = facts_of(signer, rule("spending-limit", **limits), slot=slot_of("600", hours=200))
    assert isinstance(judge(signer, facts, value=value).outcome, Signed) is signs


@pytest.mark.parametrize("asset", [EVM_NATIVE, coin_of(1)])
@pytest.mark.parametrize(("spent", "signs"), [(1000, True), (1001, False)])
def test_all_that_a_slot_counts_of_a_coin_counts(signer: SigningState, asset: str, spent: int, signs: bool) -> None:
    charges = {coin_of(1): Charge("300", HOUR), EVM_NATIVE: Charge("300", HOUR)}
    # The sum of the chain's coin has nothing of what was counted for all coins.
    spend = {EVM_NATIVE: (spent, spent), coin_of(1): (spent - 300, spent - 300)}
    limit = rule("spending-limit", maxPerDay="1000", asset=asset)
    facts = facts_of(signer, limit, slot=Slot(4, "open", "before", charges), spend=spend)
    assert isinstance(judge(signer, facts).outcome, Signed) is signs


def test_a_slot_from_before_coins_were_counted_by_chain_counts_for_this_one(signer: SigningState) -> None:
    limit = rule("spending-limit", maxPerDay="1000", asset=coin_of(1))
    spend = {EVM_NATIVE: (600, 600), coin_of(1): (500, 500)}

    old = facts_of(signer, limit, slot=slot_of("600", asset=EVM_NATIVE), spend=spend)
    assert isinstance(judge(signer, old).outcome, Refused)
    less = facts_of(signer, limit, slot=slot_of("500", asset=EVM_NATIVE), spend=spend)
    assert isinstance(judge(signer, less).outcome, Signed)


@pytest.mark.parametrize(("most", "signs"), [(3, True), (2, False)])
def test_an_order_counts_among_those_of_the_hour(signer: SigningState, most: int, signs: bool) -> None:
    minute = int(NOW.replace(second=0).timestamp()) - 60
    facts = facts_of(
        signer, LIMIT, rule("rate-limit", "rate", maxTxPerHour=most), minutes=[(minute, 2)], hours=[(minute - 1740, 2)]
    )
    assert isinstance(judge(signer, facts).outcome, Signed) is signs


@pytest.mark.parametrize(
    ("field", "asked", "signs"),
    [
        ("maxTxPerHour", dt.timedelta(minutes=5), True),
        ("maxTxPerHour", dt.timedelta(hours=2), False),
        ("maxTxPerDay", dt.timedelta(hours=2), True),
        ("maxTxPerDay", dt.timedelta(hours=26), False),
    ],
)
def test_an_order_that_was_queued_does_not_count_against_itself(
    signer: SigningState, field: str, asked: dt.timedelta, signs: bool
) -> None:
    way = Claiming(signer)
    way.claim = Claim("approval", NOW - asked)
    start = int(HOUR.timestamp())
    facts = facts_of(signer, LIMIT, rule("rate-limit", "rate", **{field: 2}), minutes=[(start, 2)], hours=[(start, 2)])

    assert isinstance(judge(signer, facts).outcome, Refused)
    assert isinstance(judge(signer, facts, way=way).outcome, Signed) is signs


@pytest.mark.parametrize(
    ("field", "many", "signs"),
    [("maxTxPerHour", 3, True), ("maxTxPerHour", 4, False), ("maxTxPerDay", 3, True), ("maxTxPerDay", 4, False)],
)
def test_a_batch_counts_as_each_of_its_orders(signer: SigningState, field: str, many: int, signs: bool) -> None:
    start = int(HOUR.timestamp())
    facts = facts_of(signer, LIMIT, rule("rate-limit", "rate", **{field: 5}), minutes=[(start, 2)], hours=[(start, 2)])
    attempt = attempt_of(signer)
    batch = msgspec.structs.replace(attempt, draft=msgspec.structs.replace(attempt.draft, orders=many))
    assert isinstance(go(signer, batch, facts, None).outcome, Signed) is signs


@pytest.mark.parametrize(("empty", "outcome"), [("deny", Refused), ("allow", Signed)])
def test_an_agent_without_rules_is_treated_as_the_deployment_says(
    signer: SigningState, empty: Any, outcome: type[object]
) -> None:
    signer = type(signer)(**{name: getattr(signer, name) for name in vars(signer)} | {"empty_policy": empty})
    facts = facts_of(signer)
    facts = msgspec.structs.replace(
        facts, rules="[]", head=(2, 0, signer.policies.seal("acme", "payer", "first", 2, []))
    )
    assert isinstance(judge(signer, facts).outcome, outcome)


@pytest.mark.parametrize(
    ("word", "outcome"), [(None, Queued), ("queue", Queued), ("refuse", Refused), ("allow", Signed)]
)
def test_a_call_that_no_rule_covers_is_treated_as_the_tenant_says(
    signer: SigningState, word: str | None, outcome: type[object]
) -> None:
    facts = facts_of(signer, config=None if word is None else {"uncoveredEffects": word})
    assert isinstance(judge(signer, facts, data=UNREAD).outcome, outcome)


def test_a_queued_order_waits_under_a_mac_over_all_that_must_not_change(signer: SigningState) -> None:
    cap = rule("rate-limit", "cap", maxTxPerDay=100)
    facts = facts_of(signer, LIMIT, cap, config={"autoExpireSeconds": 99})
    attempt = attempt_of(signer, way=Shown(signer), data=UNREAD)
    step = go(signer, attempt, facts, None)

    assert isinstance(step.outcome, Queued)
    waits = step.record.wait
    assert uuid.UUID(waits.approval).version
    assert [result.passed for result in step.outcome.results] == [True, True, False]
    assert step.outcome.reason.startswith("Queued for approval: ")
    assert (step.record.told.status, waits.approval) == ("pending_approval", step.outcome.approval_id)
    assert (step.facts, waits.expire_seconds, step.outcome.tx_id) == (facts, 99, "new")
    by = '{"by":"signer"}'
    content = approval_content("acme", "payer", "first", "new", waits.approval, attempt.draft.digest, by)
    signer.sealer.check_mac(waits.approval_mac, APPROVAL_MAC, "acme", content)


def test_a_refused_order_is_remembered_with_its_reasons(signer: SigningState) -> None:
    facts = facts_of(signer)
    step = judge(signer, facts, value="1001")

    assert isinstance(step.outcome, Refused)
    assert (step.facts, step.outcome.tx_id) == (facts, "new")
    assert (step.record.told.status, step.record.release.signed_bytes) == ("rejected", None)
    assert [result.passed for result in step.outcome.results] == [False]
    assert (step.outcome.room, step.outcome.reason[:18]) == (None, "Refused by policy:")


def test_a_refusal_that_time_lifts_says_when(signer: SigningState) -> None:
    start = int(HOUR.timestamp())
    daily, hourly = (rule("rate-limit", "rate", **{field: 1}) for field in ("maxTxPerDay", "maxTxPerHour"))
    day = judge(signer, facts_of(signer, LIMIT, daily, hours=[(start, 1)])).outcome
    hour = judge(signer, facts_of(signer, LIMIT, hourly, minutes=[(start, 1)])).outcome
    # From the end of its bucket: the hour, or the minute, in which it was.
    assert (day.room.seconds, hour.room.seconds) == (25 * 3600 - 1815, 3660 - 1815)


@pytest.mark.parametrize(("wei", "signs"), [(10**15, True), (10**15 + 1, False)])
def test_a_limit_in_dollars_is_judged_by_the_prices_of_the_moment(signer: SigningState, wei: int, signs: bool) -> None:
    # At $1,000 a coin this much is worth a dollar.
    prices = {NOW: {coin_of(1): Decimal(1000)}}
    parts = {name: getattr(signer, name) for name in vars(signer)} | {"prices": lambda now: prices[now]}
    facts = facts_of(signer, rule("spending-limit", maxPerDay="1000000", asset="usd"))
    assert isinstance(judge(type(signer)(**parts), facts, value=str(wei)).outcome, Signed) is signs


def test_amounts_are_told_in_units_of_the_chain(signer: SigningState) -> None:
    facts = facts_of(signer, rule("spending-limit", maxPerDay=str(10**18)))
    assert "2 ETH" in judge(signer, facts, value=str(2 * 10**18)).outcome.reason


def test_an_order_that_only_a_node_can_complete_asks_for_that(signer: SigningState) -> None:
    step = judge(signer, prepared=None, broadcast=True)
    assert step == Answered(NeedsPreparation())


def test_an_approved_order_is_no_longer_queued_by_what_a_person_may_allow(signer: SigningState) -> None:
    assert isinstance(judge(signer, data=UNREAD).outcome, Queued)
    assert isinstance(judge(signer, data=UNREAD, way=Claiming(signer)).outcome, Signed)


ANN = "11111111-1111-4111-8111-111111111111"
QUORUM = rule("approval-quorum", "quorum", threshold=1, approvers=[{"userId": ANN, "keys": ["ab" * 32]}])
HOLDS: list[int] = [1]
BROKEN: list[int] = []


def break_of(
    signer: SigningState, *, version: int = 2, hours: int = -1, agent: str = "payer", incarnation: str = "first"
) -> Break:
    effective = NOW + dt.timedelta(hours=hours)
    mac = broken_quorums.seal_break(signer, ("acme", agent, incarnation), version, effective)
    return Break(version, effective, mac)


def test_quorums_are_broken_by_the_operator_s_own_word_alone(signer: SigningState) -> None:
    """A quorum that is broken asks for no votes any more, so nothing else may break one."""
    whole = break_of(signer)
    said = {
        "no word": (Break(None, None, None), HOLDS),
        "the word of the operator": (whole, BROKEN),
        "a word that holds from now on": (break_of(signer, hours=0), BROKEN),
        "a word that does not hold yet": (break_of(signer, hours=1), HOLDS),
        "a word on another version": (break_of(signer, version=1), HOLDS),
        "a word that was moved to this version": (break_of(signer, version=1)._replace(version=2), HOLDS),
        "a word on another agent": (break_of(signer, agent="other"), HOLDS),
        "a word on an agent before": (break_of(signer, incarnation="before"), HOLDS),
        "a word without a MAC": (whole._replace(mac=None), HOLDS),
        "a word that was made earlier": (whole._replace(effective_at=NOW - dt.timedelta(days=9)), HOLDS),
    }
    found = {}
    for what, (word, _) in said.items():
        way = Counting(signer)
        judge(signer, facts_of(signer, LIMIT, QUORUM), read=Read(word, None), way=way)
        found[what] = [one.threshold for one in way.quorums]
    assert found == {what: thresholds for what, (_, thresholds) in said.items()}


def test_a_quorum_asks_for_votes_until_it_is_broken(signer: SigningState) -> None:
    facts = facts_of(signer, LIMIT, QUORUM)
    assert isinstance(judge(signer, facts).outcome, Queued)

    step = judge(signer, facts, read=Read(break_of(signer), None))
    assert isinstance(step.outcome, Signed)
    # A receipt names the set as it is stored, whatever of it was broken.
    stored = signer.policies.open("acme", "payer", "first", facts.head, 2, facts.rules).hash
    assert step.record.found.policy_hash == stored


def test_votes_that_count_are_judged_with(signer: SigningState) -> None:
    class Voted(Direct):
        def count_votes(self, *_: Any) -> Any:
            return Votes(frozenset({(ANN, "ab" * 32)}))

    step = judge(signer, facts_of(signer, LIMIT, QUORUM), way=Voted(signer))
    assert isinstance(step.outcome, Signed)
    assert step.tally == Votes(frozenset({(ANN, "ab" * 32)}))
