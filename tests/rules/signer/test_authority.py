"""The authority of an order, by what was shown: each look that is taken, and what is said where it finds less."""

import hmac
from datetime import UTC, datetime, timedelta

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from custody.identity.authority import Authority, Authorized, Quorum, Signer
from custody.identity.mfa import MfaPolicy
from custody.identity.request_signature import (
    RequestExpired,
    RequestFromTheFuture,
    RequestStale,
    Signature,
    SignatureMalformed,
)
from custody.kit.callers import Authorization, IdempotencyKey, ShownSigner
from custody.kit.errors import Invalid
from custody.protocol.refusals import SignatureMismatch
from custody.protocol.signer.refusals import (
    AuthorizationStale,
    AutomationDisabled,
    QuorumNotMet,
    RequestTimeRequired,
    SignerPermission,
    SignerUnknown,
)
from custody.worker.sealing import fields, sha256
from signer.authority import authorize, check_switches, standing, text_of, used_signatures
from signer.signed_request import Evidence

NOW = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)
CONTENT = b"the text that is signed"
SIGN = frozenset({"sign_transaction"})
OTHER = frozenset({"transfer"})
SECRETS = {"a": b"secret of a", "b": b"secret of b", "empty": b""}
KEYS = {name: ec.generate_private_key(ec.SECP256R1()) for name in ("p", "q")}


def spki(name):
    return KEYS[name].public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


def signer(name, *, key=None, kind="service", subject=None, permissions=SIGN, status="active", rules=()):
    return Signer(
        id=name,
        signer_type=kind,
        subject=("external", subject or name),
        key_type="hmac" if key is None else "p256",
        public_key=key,
        permissions=permissions,
        policy_ids=rules,
        status=status,
    )


def quorum(threshold, *members, permissions=SIGN, status="active"):
    return Quorum(id="q", threshold=threshold, members=members, children=(), permissions=permissions, status=status)


def authority(*signers, quorums=()):
    return Authority({one.id: one for one in signers}, {one.id: one for one in quorums})


def show(*signers, quorum=None, secret=None, timestamp=NOW, expires_at=None, key="k"):
    return Authorization(
        method="POST",
        path="/vault/agent/sign",
        timestamp=timestamp and str(int(timestamp.timestamp())),
        expires_at=expires_at and str(int(expires_at.timestamp())),
        idempotency_key=key,
        body=b"{}",
        quorum=quorum,
        shown=tuple(ShownSigner(name, secret=secret, signature=None if secret else "x") for name in signers),
    )


def evidence(given, *signatures, problem=None):
    return Evidence(given, CONTENT, signatures, problem, {})


def by_hmac(name, secret=None, content=CONTENT):
    return name, Signature("v1", hmac.digest(secret or SECRETS[name], content, "sha256"))


def by_key(name, key=None, content=CONTENT):
    return name, Signature("p256", KEYS[key or name].sign(content, ec.ECDSA(SHA256())))


def judge(given, found, permissions=SIGN):
    return authorize(given, found, SECRETS.get, permissions, NOW)


def secret_of(name="a", **changed):
    return evidence(show(name, **{"secret": SECRETS["a"].decode(), "timestamp": None, "key": None, **changed}))


def test_a_credential_authorises_for_its_signer():
    assert judge(secret_of(), authority(signer("a", rules=("r1", "r2")))) == Authorized(None, ("a",), ("r1", "r2"))


@pytest.mark.parametrize(
    "given",
    [secret_of(secret="secret of b"), secret_of(secret="secret of "), secret_of(secret="secret of aa"), secret_of("c")],
)
def test_another_text_is_no_credential(given):
    with pytest.raises(SignatureMismatch, match="is not this signer's credential"):
        judge(given, authority(signer("a"), signer("b"), signer("c")))


def test_a_lost_credential_is_shown_by_nobody():
    with pytest.raises(SignatureMismatch, match="is not this signer's credential"):
        judge(evidence(show("empty", secret="\0")), authority(signer("empty")))


def test_a_key_has_no_credential():
    with pytest.raises(SignatureMismatch, match="is not this signer's credential"):
        judge(secret_of(), authority(signer("a", key=spki("p"))))


def test_signatures_of_both_kinds_authorise():
    found = authority(signer("a", rules=("r",)), signer("p", key=spki("p")))

    assert judge(evidence(show("a"), by_hmac("a")), found) == Authorized(None, ("a",), ("r",))
    assert judge(evidence(show("p"), by_key("p")), found) == Authorized(None, ("p",), ())


@pytest.mark.parametrize(
    ("name", "made"),
    [
        ("a", by_hmac("a", b"another")),
        ("a", by_hmac("a", content=b"another text")),
        ("a", ("a", by_key("p")[1])),
        ("c", by_hmac("c", b"x")),
        ("empty", by_hmac("empty", b"\0")),
        ("p", by_key("p", "q")),
        ("p", by_key("p", content=b"another text")),
        ("p", ("p", by_hmac("a")[1])),
    ],
)
def test_a_signature_of_another_text_or_key_authorises_nothing(name, made):
    found = authority(signer("a"), signer("c"), signer("empty"), signer("p", key=spki("p")))

    with pytest.raises(SignatureMismatch):
        judge(evidence(show(name), made), found)


def test_a_signature_by_a_key_is_checked_once():
    given = evidence(show("p"), by_key("p"))
    found = authority(signer("p", key=spki("p")))
    judge(given, found)
    [mark] = given.checked
    assert mark == ("p", spki("p"), given.signatures[0][1].mark)

    judge(given, found)
    given.checked[mark] = False
    with pytest.raises(SignatureMismatch):
        judge(given, found)


def test_a_key_that_was_never_seen_is_read():
    key = ec.generate_private_key(ec.SECP256R1())
    public = key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    made = Signature("p256", key.sign(CONTENT, ec.ECDSA(SHA256())))

    assert judge(evidence(show("n"), ("n", made)), authority(signer("n", key=public))).signers == ("n",)


def test_another_key_of_the_same_signer_is_checked_again():
    given = evidence(show("p"), by_key("p"))
    judge(given, authority(signer("p", key=spki("p"))))

    with pytest.raises(SignatureMismatch):
        judge(given, authority(signer("p", key=spki("q"))))


def test_a_sealed_key_of_another_kind_is_no_answer():
    key = rsa.generate_private_key(65537, 2048).public_key()
    other = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)

    with pytest.raises(TypeError, match="a sealed key of a signer is of another kind"):
        judge(evidence(show("p"), by_key("p")), authority(signer("p", key=other)))


def test_a_malformed_signature_is_told_first():
    given = evidence(show("stranger", timestamp=NOW - timedelta(days=1)), problem=SignatureMalformed())

    with pytest.raises(SignatureMalformed):
        judge(given, authority())


@pytest.mark.parametrize(
    ("times", "said"),
    [
        ({"timestamp": NOW - timedelta(minutes=6)}, RequestStale),
        ({"timestamp": NOW + timedelta(minutes=1)}, RequestFromTheFuture),
        ({"timestamp": None, "expires_at": NOW}, RequestExpired),
    ],
)
@pytest.mark.parametrize("secret", [None, "secret of a"])
def test_times_bind_whatever_is_show(times, said, secret):
    given = show("a", secret=secret, **times)

    with pytest.raises(said):
        judge(evidence(given, *([] if secret else [by_hmac("a")])), authority(signer("a")))


def test_a_signature_needs_a_time_and_a_key():
    found = authority(signer("a"))

    with pytest.raises(RequestTimeRequired):
        judge(evidence(show("a", timestamp=None), by_hmac("a")), found)
    with pytest.raises(Invalid, match="requires an Idempotency-Key") as refused:
        judge(evidence(show("a", key=None), by_hmac("a")), found)
    assert refused.value.code == "idempotency_key_required"
    only_an_end = show("a", timestamp=None, expires_at=NOW + timedelta(minutes=1))
    assert judge(evidence(only_an_end, by_hmac("a")), found).signers == ("a",)


@pytest.mark.parametrize("found", [authority(), authority(signer("a", status="paused")), authority(signer("b"))])
def test_unknown_and_paused_signers_are_told_one_thing(found):
    with pytest.raises(SignerUnknown):
        judge(evidence(show("a"), by_hmac("a")), found)


def test_a_signer_needs_one_of_the_permissions():
    found = authority(signer("a", permissions=frozenset({"transfer", "sign_message"})))

    with pytest.raises(SignerPermission):
        judge(evidence(show("a"), by_hmac("a")), found)
    assert judge(evidence(show("a"), by_hmac("a")), found, SIGN | OTHER).signers == ("a",)


def test_a_member_of_quorums_authorises_nothing_alone():
    with pytest.raises(SignerPermission, match="only inside a key quorum"):
        judge(evidence(show("a"), by_hmac("a")), authority(signer("a", kind="quorum_member")))


def two_of_three(*names, signatures=None, permissions=SIGN, status="active", rules=False):
    found = authority(
        signer("a", kind="quorum_member", rules=("r1", "r2") if rules else ()),
        signer("b", rules=("r2", "r3") if rules else ()),
        signer("p", key=spki("p"), subject="a" if rules is None else None),
        quorums=[quorum(2, "a", "b", "p", permissions=permissions, status=status)],
    )
    made = [by_key(name) if name == "p" else by_hmac(name) for name in (signatures or names)]
    return judge(evidence(show(*names, quorum="q"), *made), found)


def test_enough_of_a_quorum_authorise():
    assert two_of_three("b", "a") == Authorized("q", ("a", "b"), ())
    assert two_of_three("a", "p").signers == ("a", "p")
    assert two_of_three("b", "a", rules=True).policy_ids == ("r1", "r2", "r3")


def test_too_few_of_a_quorum_are_told_who_does_not_count():
    with pytest.raises(QuorumNotMet) as refused:
        two_of_three("a")
    assert str(refused.value) == QuorumNotMet.__doc__
    assert refused.value.context["notCounted"] == {}
    with pytest.raises(QuorumNotMet) as refused:
        two_of_three("a", "p", rules=None)
    assert str(refused.value).endswith(" p does not count: it has the subject or the key of a, which counts.")
    assert list(refused.value.context["notCounted"]) == ["p"]


def test_signers_that_do_not_count_are_told_with_the_reason():
    found = authority(
        signer("a"),
        signer("b", subject="a"),
        signer("c"),
        quorums=[
            Quorum(id="q", threshold=2, members=("a", "b"), children=("r", "s"), permissions=SIGN, status="active"),
            Quorum(id="r", threshold=1, members=("c",), children=(), permissions=OTHER, status="active"),
            Quorum(id="s", threshold=2, members=("c",), children=(), permissions=SIGN, status="active"),
        ],
    )

    with pytest.raises(QuorumNotMet) as refused:
        judge(evidence(show("a", "b", quorum="q"), by_hmac("a"), by_hmac("b")), found)
    assert str(refused.value).removeprefix(QuorumNotMet.__doc__) == (
        " b does not count: it has the subject or the key of a, which counts."
        " r does not count: it lacks the permission that this route needs."
        " s does not count: too few of its own members agreed."
    )


def test_a_name_without_a_proof_refuses_all():
    with pytest.raises(SignatureMismatch):
        two_of_three("a", "b", "p", signatures=("a", "b"))


def test_a_quorum_must_stand_and_have_the_permission():
    with pytest.raises(SignerUnknown):
        two_of_three("a", "b", status="paused")
    with pytest.raises(SignerUnknown):
        judge(evidence(show("a", quorum="other"), by_hmac("a")), authority(signer("a"), quorums=[quorum(1, "a")]))
    with pytest.raises(SignerPermission, match="The key quorum lacks the permission"):
        two_of_three("a", "b", permissions=OTHER)


def test_the_switches_of_a_tenant_are_two():
    alone, together = evidence(show("a")), evidence(show("a", quorum="q"))
    check_switches(alone, MfaPolicy(allow_key_quorum_automation=False))
    check_switches(together, MfaPolicy(allow_delegated_signer_automation=False))

    with pytest.raises(AutomationDisabled, match="no orders that a single signer authorises"):
        check_switches(alone, MfaPolicy(allow_delegated_signer_automation=False))
    with pytest.raises(AutomationDisabled, match="no orders that a key quorum authorises"):
        check_switches(together, MfaPolicy(allow_key_quorum_automation=False))


def test_an_earlier_authority_must_still_stand():
    earlier = Authorized(None, ("a",), ("old",))

    assert standing(authority(signer("a", rules=("new",))), earlier, SIGN, NOW) == Authorized(None, ("a",), ("new",))
    for found in (
        authority(),
        authority(signer("a", status="paused")),
        authority(signer("a", permissions=OTHER)),
        authority(signer("a", kind="quorum_member")),
    ):
        with pytest.raises(AuthorizationStale):
            standing(found, earlier, SIGN, NOW)


@pytest.mark.parametrize("names", [(), ("a", "b")])
def test_one_alone_is_one(names):
    with pytest.raises(AuthorizationStale):
        standing(authority(signer("a"), signer("b")), Authorized(None, names, ()), SIGN, NOW)


def test_a_quorum_that_authorised_before_must_still_agree():
    members = [signer("a", rules=("r",)), signer("b")]
    earlier = Authorized("q", ("a", "b"), ())

    again = standing(authority(*members, quorums=[quorum(2, "a", "b")]), earlier, SIGN, NOW)
    assert again == Authorized("q", ("a", "b"), ("r",))
    for now in ([], [quorum(2, "a")], [quorum(3, "a", "b")], [quorum(2, "a", "b", permissions=OTHER)]):
        with pytest.raises(AuthorizationStale):
            standing(authority(*members, quorums=now), earlier, SIGN, NOW)


def test_a_signer_that_is_gone_takes_nothing_from_the_others():
    found = authority(signer("a", rules=("r",)), signer("b"), quorums=[quorum(2, "a", "b", "gone")])

    assert standing(found, Authorized("q", ("a", "b", "gone"), ()), SIGN, NOW) == Authorized(
        "q", ("a", "b", "gone"), ("r",)
    )


def test_signatures_are_used_up_under_what_signs():
    given = evidence(show("b", "a", quorum="q"), by_hmac("b"), by_hmac("a"))
    key = IdempotencyKey("POST /vault/{agentId}/sign", b"hash", b"fingerprint")

    found = used_signatures(given, "agent:x", key)

    marks = {name: sha256(made.mark) for name, made in given.signatures}
    assert found.by == ["a", "b"]
    assert found.marks == [marks["a"], marks["b"]]
    assert found.until == NOW + timedelta(minutes=5)
    assert found.request == sha256(fields("agent:x", key.route, "k"))
    assert used_signatures(given, "agent:x", None).request == sha256(fields("agent:x", "", "k"))
    without = used_signatures(evidence(show("a", key=None), by_hmac("a")), "agent:x", key)
    assert without.request == sha256(fields("agent:x", key.route, ""))


def test_a_signature_is_kept_as_used_until_it_is_good_no_more():
    ends = NOW + timedelta(minutes=1)

    assert used_signatures(evidence(show("a", expires_at=ends), by_hmac("a")), "agent:x", None).until == ends
    # Such a request is refused before; what is kept for ever would fill the table.
    assert used_signatures(evidence(show("a", timestamp=None), by_hmac("a")), "agent:x", None) is None


def test_two_signers_with_one_key_use_up_one_signature():
    made = by_key("p")
    given = evidence(show("p", "twin", quorum="q"), made, ("twin", made[1]))
    judge(
        given,
        authority(
            signer("p", key=spki("p")), signer("twin", key=spki("p")), signer("a"), quorums=[quorum(1, "p", "twin")]
        ),
    )

    assert used_signatures(given, "agent:x", None).by == [sha256(spki("p")).hex()]


def test_a_credential_is_not_used_up():
    assert used_signatures(secret_of(), "agent:x", None) is None
    assert used_signatures(secret_of(timestamp=NOW), "agent:x", None) is None


def test_the_text_of_a_row_reads_back():
    assert text_of(Authorized("q", ("a",), ("r",))) == '{"quorum":"q","signers":["a"],"policyIds":["r"]}'
