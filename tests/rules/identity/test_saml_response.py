"""An identity provider is believed about a person only where every rule holds. Normative text: docs/saml.md.

Each test builds a genuine answer, sees that it is accepted, changes one thing and asserts the code that refuses it.
"""

import copy
import zlib
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from custody.identity.saml_refusals import CHECKS, NAMES, SamlRefused
from identity.saml.response import decode_response, read_response
from identity.saml.types import Assertion, Expected
from tests.fixtures.each import each
from tests.outside import saml_answers as saml
from tests.outside.saml_answers import Answer

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
KEY = saml.key()
GENUINE = Answer(now=NOW)
EXPECTED = Expected(
    idp_entity_id=GENUINE.idp_entity_id,
    sp_entity_id=GENUINE.sp_entity_id,
    acs_url=GENUINE.acs_url,
    request_id="_" + "r" * 43,
    certificates=(KEY.certificate,),
    groups_attribute="groups",
    now=NOW,
)
type Change = Callable[[Any], object]


def refusal_of(content: bytes, expected: Expected = EXPECTED) -> SamlRefused:
    """The refusal of an answer, beside a genuine one that is accepted under the same expectations."""
    read_response(GENUINE.sign(KEY), EXPECTED)
    with pytest.raises(SamlRefused) as caught:
        read_response(content, expected)
    assert caught.value.check in NAMES
    assert caught.value.message.endswith(".")
    return caught.value


def code_of(answer: Answer, what: str = "assertion") -> str:
    return refusal_of(answer.sign(KEY, what)).code


def code_after(change: Change, answer: Answer = GENUINE) -> str:
    """The code of an answer that the identity provider itself signed after this change of its tree."""
    tree = answer.tree()
    change(tree)
    return refusal_of(saml.sign_tree(tree, KEY)).code


def accept(answer: Answer = GENUINE, **expected: Any) -> Assertion:
    return read_response(answer.sign(KEY), msgspec.structs.replace(EXPECTED, **expected))


def set_on(local: str, **attributes: str | None) -> Change:
    """A change of an element's attributes; None takes one away."""

    def change(tree: Any) -> None:
        element = saml.the(tree, local)
        for name, value in attributes.items():
            element.attrib.pop(name, None)
            if value is not None:
                element.set(name, value)

    return change


def at(**moments: timedelta) -> dict[str, str]:
    return {name: saml.instant(NOW + moment) for name, moment in moments.items()}


def test_a_genuine_answer_is_read() -> None:
    said = accept()

    assert said == Assertion(
        assertion_id="_assertion1",
        name_id="ann@example.com",
        name_id_format=saml.EMAIL,
        email="ann@example.com",
        email_missing="",
        groups=("staff", "admins"),
        attributes={"groups": ("staff", "admins")},
        not_on_or_after=NOW + timedelta(minutes=7),
        session_not_on_or_after=NOW + timedelta(hours=8),
        authn_instant=NOW - timedelta(seconds=5),
        warnings=(),
    )


@each("kind", ["rsa", "p256", "p384", "p521"])
@each("what", ["assertion", "both"])
@each("prefixes", [None, "saml xs", "#default saml samlp"])
def test_an_answer_that_another_library_signed_is_accepted(kind: str, what: str, prefixes: str | None) -> None:
    by = saml.key(kind)
    content = saml.sign_tree(GENUINE.tree(), by, what, prefixes)

    assert saml.holds(content, by)
    said = read_response(content, msgspec.structs.replace(EXPECTED, certificates=(KEY.certificate, by.certificate)))
    assert said.name_id == "ann@example.com"


def test_the_checks_before_the_one_that_failed_have_passed() -> None:
    refusal = refusal_of(GENUINE.but(sp_entity_id="https://other.example").sign(KEY))

    assert (refusal.code, refusal.check) == ("saml_audience", "audience")
    assert refusal.passed == CHECKS[: NAMES.index("audience")]
    assert (refusal.expected, refusal.found) == (EXPECTED.sp_entity_id, "https://other.example")
    assert len(set(NAMES)) == len(CHECKS)


def test_a_certificate_that_ended_only_warns() -> None:
    old = saml.key("rsa", "old", NOW - timedelta(days=3))

    said = read_response(GENUINE.sign(old, "both"), msgspec.structs.replace(EXPECTED, certificates=(old.certificate,)))

    assert len(said.warnings) == 1
    assert "2025-12-29" in said.warnings[0]


# S25
@each(("what", "says"), [("nothing", "signed nothing"), ("response", "signed the response")])
def test_an_assertion_that_is_not_signed_itself_is_refused_with_the_switch(what: str, says: str) -> None:
    refusal = refusal_of(GENUINE.sign(KEY, what))

    assert refusal.code == "saml_assertion_unsigned"
    assert says in refusal.message
    assert '"Sign assertions"' in refusal.message


# S25
def test_a_wrong_signature_of_the_response_refuses_a_right_one_of_the_assertion() -> None:
    tree = GENUINE.tree()
    saml.sign(saml.the(tree, "Assertion"), KEY)
    saml.sign(tree, saml.key("rsa", "other"))
    refusal = refusal_of(saml.to_bytes(tree))

    assert (refusal.code, refusal.check) == ("saml_signature_invalid", "response_signature")


# S26
@each("local", ["EncryptedAssertion", "EncryptedID", "EncryptedAttribute"])
def test_an_encrypted_part_is_refused(local: str) -> None:
    def change(tree: Any) -> None:
        place = {"EncryptedAssertion": "Response", "EncryptedID": "Subject", "EncryptedAttribute": "AttributeStatement"}
        saml.add(saml.the(tree, place[local]), saml.SAML, local)

    assert code_after(change) == "saml_encrypted"


# S26
def test_an_encrypted_assertion_beside_the_signed_one_is_refused() -> None:
    tree = saml.etree.fromstring(GENUINE.sign(KEY))
    saml.add(tree, saml.SAML, "EncryptedAssertion")

    assert refusal_of(saml.to_bytes(tree)).code == "saml_encrypted"


# S29
@each(
    ("outer", "inner", "code"),
    [
        ("_other", None, "saml_request_mismatch"),
        ("_" + "r" * 43, "_other", "saml_request_mismatch"),
        ("_other", "_" + "r" * 43, "saml_request_mismatch"),
        ("_" + "r" * 43, None, "saml_request_mismatch"),
        (None, "_other", "saml_request_mismatch"),
        (None, None, "saml_unsolicited"),
    ],
)
def test_an_answer_to_another_request_or_to_none_is_refused(outer: str | None, inner: str | None, code: str) -> None:
    assert code_of(GENUINE.but(outer_request_id=outer, request_id=inner)) == code


def test_a_response_may_leave_out_what_the_assertion_says() -> None:
    assert accept(GENUINE.but(outer_request_id=None, destination=None)).name_id == "ann@example.com"


OTHER_ACS = "https://custody.example/auth/saml/other/acs"
OTHER_ENTITY = "https://custody.example/auth/saml/other/metadata"


# S30
@each(
    ("change", "code"),
    [
        (set_on("SubjectConfirmationData", Recipient=OTHER_ACS), "saml_recipient"),
        (set_on("SubjectConfirmationData", Recipient=None), "saml_recipient"),
        (set_on("SubjectConfirmationData", Recipient=GENUINE.acs_url + "/"), "saml_recipient"),
        (set_on("Response", Destination=OTHER_ACS), "saml_destination"),
        (lambda tree: setattr(saml.the(tree, "Audience"), "text", OTHER_ENTITY), "saml_audience"),
        (lambda tree: setattr(saml.the(tree, "Audience"), "text", f" {GENUINE.sp_entity_id}"), "saml_audience"),
        (lambda tree: saml.the(tree, "Conditions").remove(saml.the(tree, "AudienceRestriction")), "saml_audience"),
    ],
)
def test_an_answer_for_another_tenant_is_refused(change: Change, code: str) -> None:
    assert code_after(change) == code


# S30
def test_a_second_restriction_without_this_tenant_is_refused() -> None:
    def add(audience: str) -> Change:
        return lambda tree: saml.add(
            saml.add(saml.the(tree, "Conditions"), saml.SAML, "AudienceRestriction"), saml.SAML, "Audience", audience
        )

    tree = GENUINE.tree()
    add(GENUINE.sp_entity_id)(tree)
    assert read_response(saml.sign_tree(tree, KEY), EXPECTED)
    assert code_after(add(OTHER_ENTITY)) == "saml_audience"


def test_a_condition_that_is_not_known_is_refused() -> None:
    known: Change = lambda tree: saml.add(saml.the(tree, "Conditions"), saml.SAML, "OneTimeUse")  # noqa: E731
    tree = GENUINE.tree()
    known(tree)
    assert read_response(saml.sign_tree(tree, KEY), EXPECTED)

    assert code_after(lambda tree: saml.add(saml.the(tree, "Conditions"), saml.SAML, "Condition")) == (
        "saml_condition_unknown"
    )


# S31
@each("place", [0, 1])
@each("issuer", ["https://evil.example", f" {GENUINE.idp_entity_id}", f"{GENUINE.idp_entity_id} "])
def test_another_issuer_inside_or_outside_is_refused(place: int, issuer: str) -> None:
    assert code_after(lambda tree: setattr(list(tree.iter("{*}Issuer"))[place], "text", issuer)) == "saml_issuer"


def test_an_answer_that_was_printed_with_indentation_is_read_as_without() -> None:
    tree = GENUINE.tree()
    for one in tree.iter("{*}Issuer", "{*}Audience", "{*}NameID"):
        one.text = f"\n          {one.text}\r\n      "

    assert read_response(saml.sign_tree(tree, KEY), EXPECTED).name_id == GENUINE.name_id


# S32
TIMES = {
    "expired by 121 s": (set_on("SubjectConfirmationData", **at(NotOnOrAfter=timedelta(seconds=-121))), "saml_expired"),
    "conditions expired": (set_on("Conditions", **at(NotOnOrAfter=timedelta(seconds=-121))), "saml_expired"),
    "not valid for 121 s": (set_on("Conditions", **at(NotBefore=timedelta(seconds=121))), "saml_not_yet_valid"),
    "issued in 121 s": (set_on("Assertion", **at(IssueInstant=timedelta(seconds=121))), "saml_not_yet_valid"),
    "issued 11 minutes ago": (set_on("Assertion", **at(IssueInstant=timedelta(minutes=-11))), "saml_too_old"),
    "answered 11 minutes ago": (set_on("Response", **at(IssueInstant=timedelta(minutes=-11))), "saml_too_old"),
    "signed in later": (set_on("AuthnStatement", **at(AuthnInstant=timedelta(seconds=121))), "saml_not_yet_valid"),
    "session ended": (set_on("AuthnStatement", **at(SessionNotOnOrAfter=timedelta())), "saml_session_ended"),
    "no end": (set_on("SubjectConfirmationData", NotOnOrAfter=None), "saml_time_malformed"),
    "no instant": (set_on("Assertion", IssueInstant=None), "saml_time_malformed"),
    "no zone": (set_on("Conditions", NotOnOrAfter="2026-01-01T12:05:00"), "saml_time_malformed"),
    "year 9999": (set_on("Conditions", NotOnOrAfter="9999-12-31T23:59:59Z"), "saml_time_malformed"),
    "year 9999 with a zone": (set_on("Conditions", NotOnOrAfter="9999-12-31T23:59:59-01:00"), "saml_time_malformed"),
    "year 0": (set_on("Conditions", NotBefore="0000-01-01T00:00:00Z"), "saml_time_malformed"),
    "leap second": (set_on("Conditions", NotOnOrAfter="2026-12-31T23:59:60Z"), "saml_time_malformed"),
    "no date": (set_on("Conditions", NotOnOrAfter="tomorrow"), "saml_time_malformed"),
    "line end": (set_on("Conditions", NotOnOrAfter="2026-01-01T12:05:00Z\n"), "saml_time_malformed"),
}


@each(("change", "code"), TIMES.values(), ids=TIMES.keys())
def test_an_answer_outside_of_its_time_is_refused(change: Change, code: str) -> None:
    assert code_after(change) == code


@each(
    "change",
    [
        set_on("SubjectConfirmationData", **at(NotOnOrAfter=timedelta(seconds=-119))),
        set_on("Conditions", **at(NotBefore=timedelta(seconds=119))),
        set_on("Assertion", **at(IssueInstant=timedelta(minutes=-9))),
        set_on("Conditions", NotOnOrAfter=None, NotBefore=None),
    ],
)
def test_clocks_may_differ_by_two_minutes(change: Change) -> None:
    tree = GENUINE.tree()
    change(tree)
    said = read_response(saml.sign_tree(tree, KEY), EXPECTED)

    # Nothing is accepted any more once its id may be forgotten.
    later = msgspec.structs.replace(EXPECTED, now=said.not_on_or_after)
    assert refusal_of(saml.sign_tree(tree, KEY), later).code in ("saml_expired", "saml_too_old")


# S33
@each(
    ("change", "code"),
    [
        (set_on("SubjectConfirmation", Method="urn:oasis:names:tc:SAML:2.0:cm:holder-of-key"), "saml_confirmation"),
        (set_on("SubjectConfirmation", Method=None), "saml_confirmation"),
        (set_on("SubjectConfirmationData", **at(NotBefore=timedelta(seconds=-5))), "saml_confirmation"),
        (lambda tree: saml.add(saml.the(tree, "SubjectConfirmation"), saml.SAML, "NameID", "eve"), "saml_shape"),
    ],
)
def test_a_confirmation_that_is_not_the_bearers_is_refused(change: Change, code: str) -> None:
    assert code_after(change) == code


OTHER_WAYS: dict[str, Change] = {
    "for another recipient": set_on("SubjectConfirmationData", Recipient=OTHER_ACS),
    "for another request": set_on("SubjectConfirmationData", InResponseTo="_other"),
    "expired": set_on("SubjectConfirmationData", **at(NotOnOrAfter=timedelta(seconds=-121))),
    "without an end": set_on("SubjectConfirmationData", NotOnOrAfter=None),
    "with a beginning": set_on("SubjectConfirmationData", **at(NotBefore=timedelta(seconds=-5))),
    "for holders of a key": set_on("SubjectConfirmation", Method="urn:oasis:names:tc:SAML:2.0:cm:holder-of-key"),
    "by vouchers, without data": lambda one: (
        one.set("Method", "urn:oasis:names:tc:SAML:2.0:cm:sender-vouches"),
        one.remove(saml.the(one, "SubjectConfirmationData")),
    ),
}


def with_another(other: Change, place: int, both: Change | None = None) -> Any:
    """The genuine answer with another confirmation before or behind the bearer's."""
    tree = GENUINE.tree()
    first = saml.the(tree, "SubjectConfirmation")
    second = copy.deepcopy(first)
    other(second)
    if both is not None:
        both(first)
    first.addnext(second) if place else first.addprevious(second)
    return tree


# S33
@each("place", [0, 1])
@each("other", OTHER_WAYS.values(), ids=OTHER_WAYS.keys())
def test_one_confirmation_that_holds_suffices(other: Change, place: int) -> None:
    said = read_response(saml.sign_tree(with_another(other, place), KEY), EXPECTED)

    assert said.name_id == GENUINE.name_id
    # Whichever is used, the assertion is remembered until none of them could be.
    later = msgspec.structs.replace(EXPECTED, now=said.not_on_or_after)
    assert refusal_of(saml.sign_tree(with_another(other, place), KEY), later).check == "times"
    elsewhere = msgspec.structs.replace(later, request_id="_other")
    assert refusal_of(saml.sign_tree(with_another(other, place), KEY), elsewhere)


@each("place", [0, 1])
def test_an_assertion_is_remembered_until_none_of_its_confirmations_could_be_used(place: int) -> None:
    tree = with_another(set_on("SubjectConfirmationData", **at(NotOnOrAfter=timedelta(minutes=9))), place)
    set_on("Conditions", NotOnOrAfter=None)(tree)
    content = saml.sign_tree(tree, KEY)

    said = read_response(content, EXPECTED)

    last = msgspec.structs.replace(EXPECTED, now=NOW + timedelta(minutes=9))
    assert read_response(content, last)
    assert said.not_on_or_after > last.now
    assert refusal_of(content, msgspec.structs.replace(EXPECTED, now=said.not_on_or_after)).check == "times"


# S33
@each("place", [0, 1])
@each("other", OTHER_WAYS.values(), ids=OTHER_WAYS.keys())
def test_several_confirmations_of_which_none_holds_are_refused(other: Change, place: int) -> None:
    wrong = set_on("SubjectConfirmationData", Recipient=OTHER_ACS)
    tree = with_another(other, place, wrong)

    assert refusal_of(saml.sign_tree(tree, KEY)).check in ("recipient", "request", "times")
    # What would hold only if it were taken apart holds nowhere: right recipient here, right request there.
    apart = with_another(OTHER_WAYS["for another request"], place, wrong)
    assert refusal_of(saml.sign_tree(apart, KEY)).code in ("saml_recipient", "saml_request_mismatch")


# S34
def test_the_identity_providers_own_refusal_is_named_and_nothing_else_is_read() -> None:
    status = "urn:oasis:names:tc:SAML:2.0:status:"
    answer = GENUINE.but(
        status=f"{status}Responder", inner_status=f"{status}AuthnFailed", issuer="https://evil.example"
    )
    refusal = refusal_of(answer.sign(KEY, "nothing"))

    assert refusal.code == "saml_idp_refused"
    assert "Responder / AuthnFailed" in refusal.message
    assert refusal.found == f"{status}Responder / {status}AuthnFailed"


def test_the_text_of_an_identity_provider_is_bounded_and_printable() -> None:
    refusal = refusal_of(GENUINE.but(status="\N{RIGHT-TO-LEFT OVERRIDE}\n" + "x" * 9_000).sign(KEY, "nothing"))

    assert len(refusal.found) <= 200
    assert refusal.found.isprintable()
    assert refusal.message.isprintable()
    assert len(refusal.message) < 500


def test_an_answer_that_does_not_say_that_the_person_signed_in_is_refused_with_the_switch() -> None:
    refusal = refusal_of(GENUINE.but(authentication=False).sign(KEY))

    assert refusal.code == "saml_authn_statement_missing"
    assert '"Include AuthnStatement"' in refusal.message


# S36
@each(
    "name_id",
    ["", "\n  \n", "x" * 10_240, " ann", "ann ", "\n ann\nbea\n", "ann\u00a0", "ann\N{RIGHT-TO-LEFT OVERRIDE}"],
)
def test_a_name_id_that_names_nobody_is_refused(name_id: str) -> None:
    assert code_of(GENUINE.but(name_id=name_id)) == "saml_name_id"


# S36
def test_a_name_id_with_an_element_in_it_is_refused() -> None:
    assert code_after(lambda tree: saml.add(saml.the(tree, "NameID"), saml.SAML, "b", "x")) == "saml_name_id"


# S36
def test_a_transient_name_id_is_somebody_only_by_the_address() -> None:
    answer = GENUINE.but(name_id_format=saml.TRANSIENT, name_id="_once")

    assert code_of(answer) == "saml_name_id_transient"
    assert accept(answer.but(attributes={"mail": ["ann@example.com"]})).email == "ann@example.com"


# S40
@each("kind", ["LogoutResponse", "AuthnRequest", "Assertion", "Envelope"])
def test_another_message_than_a_response_is_refused(kind: str) -> None:
    tree = GENUINE.tree()
    saml.sign(saml.the(tree, "Assertion"), KEY)
    if kind == "Assertion":
        tree = saml.the(tree, "Assertion")
    elif kind == "Envelope":
        soap = saml.etree.Element("{http://schemas.xmlsoap.org/soap/envelope/}Envelope")
        soap.append(tree)
        tree = soap
    else:
        tree.tag = f"{{{saml.SAMLP}}}{kind}"

    assert refusal_of(saml.to_bytes(tree)).code == "saml_not_a_response"


@each("local", ["Response", "Assertion"])
def test_another_version_of_saml_is_refused(local: str) -> None:
    assert code_after(set_on(local, Version="1.1")) == "saml_version"


# S40
def test_a_form_value_is_decoded_in_one_spelling() -> None:
    content = GENUINE.sign(KEY)
    text = saml.form_value(content)
    lines = [text[begin : begin + 76] for begin in range(0, len(text), 76)]

    assert decode_response(text) == content
    assert decode_response("\r\n".join(lines)) == decode_response("\n".join(lines) + "\n") == content
    assert decode_response(b64encode(b"<a>" + b"x" * (64 * 1024 - 7) + b"</a>").decode())


# S40
SPELLINGS = {
    "nothing": "",
    "junk": "PGEvPg==!",
    "junk inside": "PG*EvPg==",
    "blank": "PGEv Pg==",
    "no padding": "PGEvPg",
    "too much padding": "PGEvPg===",
    "spare bits": "PGEvPh==",
    "padding inside": "PG==EvPg",
    "URL alphabet": urlsafe_b64encode(b"\xfb\xff\xfe").decode(),
    "line end first": "\nPGEvPg==",
    "two line ends": "PGEv\n\nPg==",
    "carriage return": "PGEv\rPg==",
    "text": "é",
}


@each("text", SPELLINGS.values(), ids=SPELLINGS.keys())
def test_another_spelling_of_base64_is_refused(text: str) -> None:
    assert decode_response("PGEvPg==") == b"<a/>"
    with pytest.raises(SamlRefused) as caught:
        decode_response(text)
    assert caught.value.code == "saml_encoding"


@each("text", ["A" * (96 * 1024 + 4), b64encode(bytes(64 * 1024 + 1)).decode()])
def test_more_than_64_kib_are_refused(text: str) -> None:
    with pytest.raises(SamlRefused) as caught:
        decode_response(text)
    assert caught.value.code == "saml_too_large"


# S40
def test_deflated_bytes_are_no_answer() -> None:
    assert refusal_of(zlib.compress(GENUINE.sign(KEY))).code == "saml_xml"
