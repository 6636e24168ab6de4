"""Signature wrapping and what hides in XML: a forged assertion beside, around or under the signed one is never read.

Each attack is built from an answer that is accepted as it is. docs/saml.md says what may stand where.
"""

import copy
from collections.abc import Callable
from typing import Any

from identity.saml.response import read_response
from tests.fixtures.each import each
from tests.outside import saml_answers as saml
from tests.outside.saml_answers import Answer
from tests.rules.identity.test_saml_response import EXPECTED, GENUINE, KEY, code_after, refusal_of, set_on

EVIL = "eve@example.com"
XML_ID = "{http://www.w3.org/XML/1998/namespace}id"


def forge(assertion: Any, assertion_id: str | None = None) -> Any:
    """A copy without its signature, that names somebody else."""
    made = copy.deepcopy(assertion)
    for signature in list(made.iter(f"{{{saml.DS}}}Signature")):
        signature.getparent().remove(signature)
    saml.the(made, "NameID").text = EVIL
    if assertion_id:
        made.set("ID", assertion_id)
    return made


def parts(what: str = "assertion") -> tuple[Any, Any, Any]:
    """A genuine answer's tree, its assertion, and the signature."""
    tree = saml.etree.fromstring(GENUINE.sign(KEY, what))
    assert read_response(saml.to_bytes(tree), EXPECTED).name_id == GENUINE.name_id
    assertion = saml.the(tree, "Assertion")
    return tree, assertion, assertion.find(f"{{{saml.DS}}}Signature")


def put(parent: Any, child: Any, *, inside: str | None = None, at: int = 0) -> None:
    """Put an element into another one, in an element of the protocol if asked."""
    place = parent
    if inside:
        namespace = saml.DS if inside == "Object" else saml.SAML if inside == "Advice" else saml.SAMLP
        place = saml.etree.Element(f"{{{namespace}}}{inside}")
        parent.insert(at, place)
    place.insert(at if not inside else 0, child)


# S1, S2
@each("inside", [True, False])
def test_the_signed_response_is_not_accepted_inside_of_a_forged_one(inside: bool) -> None:
    tree, _, _ = parts("both")
    outer = copy.deepcopy(tree)
    outer.set("ID", "_forged")
    signature = outer.find(f"{{{saml.DS}}}Signature")
    outer.replace(saml.the(outer, "Assertion"), forge(saml.the(outer, "Assertion"), "_forged2"))
    if inside:
        put(signature, tree, inside="Object")
    else:
        signature.addprevious(tree)

    assert refusal_of(saml.to_bytes(outer)).code == "saml_shape"


# S3
@each("before", [True, False])
@each("assertion_id", [None, "_forged"])
def test_a_forged_assertion_beside_the_signed_one_is_refused(before: bool, assertion_id: str | None) -> None:
    tree, assertion, _ = parts()
    evil = forge(assertion, assertion_id)
    (assertion.addprevious if before else assertion.addnext)(evil)

    assert refusal_of(saml.to_bytes(tree)).code in ("saml_assertion_twice", "saml_id_twice")


# S4
@each("moved", [False, True])
def test_a_forged_assertion_around_the_signed_one_is_refused(moved: bool) -> None:
    tree, assertion, signature = parts()
    evil = forge(assertion, "_forged")
    tree.replace(assertion, evil)
    if moved:
        evil.insert(1, signature)
        evil.addnext(assertion)
    else:
        evil.append(assertion)

    assert refusal_of(saml.to_bytes(tree)).code == "saml_assertion_twice"


# S5
@each("inside", [None, "Object"])
def test_the_signed_assertion_inside_of_its_own_signature_is_refused(inside: str | None) -> None:
    tree, assertion, signature = parts()
    evil = forge(assertion, "_forged")
    tree.replace(assertion, evil)
    evil.insert(1, signature)
    put(signature, assertion, inside=inside)

    assert refusal_of(saml.to_bytes(tree)).code in ("saml_assertion_twice", "saml_shape")


# S6, S7
@each("hidden", ["forged", "signed"])
@each("assertion_id", [None, "_forged"])
def test_an_assertion_in_extensions_is_refused(hidden: str, assertion_id: str | None) -> None:
    tree, assertion, signature = parts()
    evil = forge(assertion, assertion_id)
    if hidden == "signed":
        tree.replace(assertion, evil)
        evil.insert(1, copy.deepcopy(signature))
    put(tree, evil if hidden == "forged" else assertion, inside="Extensions", at=1)

    assert refusal_of(saml.to_bytes(tree)).code in ("saml_shape", "saml_id_twice")


# S8
def test_a_signed_error_with_a_forged_assertion_in_a_second_signature_is_refused() -> None:
    error = GENUINE.but(status="urn:oasis:names:tc:SAML:2.0:status:Responder").tree()
    saml.sign(error, KEY)
    evil = GENUINE.assertion()
    saml.the(evil, "NameID").text = EVIL
    decoy = saml.etree.SubElement(error, f"{{{saml.DS}}}Signature")
    put(decoy, evil, inside="Object")

    assert refusal_of(saml.to_bytes(error)).code == "saml_idp_refused"
    saml.the(error, "StatusCode").set("Value", saml.SUCCESS)
    assert refusal_of(saml.to_bytes(error)).code == "saml_shape"


# S9
@each(("parent", "inside"), [("Assertion", "Advice"), ("Status", "StatusDetail")])
def test_the_signed_assertion_in_another_element_is_refused(parent: str, inside: str) -> None:
    tree, assertion, _ = parts()
    evil = forge(assertion, "_forged")
    tree.replace(assertion, evil)
    put(saml.the(tree, parent), assertion, inside=inside, at=len(saml.the(tree, parent)))

    assert refusal_of(saml.to_bytes(tree)).code == "saml_shape"


# S10
@each("local", ["SignedInfo", "Reference", "DigestValue", "SignatureValue", "Transforms"])
@each("before", [True, False])
def test_an_element_of_the_signature_that_is_there_twice_is_refused(local: str, before: bool) -> None:
    tree, _, _ = parts()
    element = saml.the(tree, local)
    (element.addprevious if before else element.addnext)(copy.deepcopy(element))

    assert refusal_of(saml.to_bytes(tree)).code == "saml_signature_shape"


HIDING = {"comment": b"<!--x-->", "CDATA": b"<![CDATA[]]>", "processing instruction": b"<?x y?>"}
PLACES = ("DigestValue", "SignatureValue", "NameID", "AttributeValue", "Audience")


# S11, S12, S13
@each("local", PLACES)
@each("node", HIDING.values(), ids=HIDING.keys())
def test_a_node_that_splits_a_text_is_refused(local: str, node: bytes) -> None:
    tree, _, _ = parts()
    element = saml.the(tree, local)
    text = element.text
    element.text = text[:3] + "@@@" + text[3:]
    content = saml.to_bytes(tree).replace(b"@@@", node)

    assert content.count(node) == 1
    assert refusal_of(content).code == "saml_xml"


# S12
def test_a_comment_that_was_there_when_it_was_signed_is_refused_too() -> None:
    def change(tree: Any) -> None:
        name_id = saml.the(tree, "NameID")
        name_id.text = "admin@example.com"
        name_id.append(saml.etree.Comment("x"))
        name_id[0].tail = ".evil.example"

    assert code_after(change) == "saml_xml"


# S14, S15
DOCTYPES = {
    "default attribute": b"<!DOCTYPE x [<!ATTLIST Assertion ID CDATA '_x'>]>",
    "entity": b"<!DOCTYPE x [<!ENTITY who 'eve@example.com'>]>",
    "expansion": b"<!DOCTYPE x [<!ENTITY a 'aaaaaaaaaa'><!ENTITY b '&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;'>]>",
    "file": b"<!DOCTYPE x [<!ENTITY who SYSTEM 'file:///etc/hostname'>]>",
    "address": b"<!DOCTYPE x [<!ENTITY % who SYSTEM 'http://127.0.0.1:9/x'> %who;]>",
    "external subset": b"<!DOCTYPE x SYSTEM 'http://127.0.0.1:9/x.dtd'>",
    "empty": b"<!DOCTYPE x>",
}


@each("doctype", DOCTYPES.values(), ids=DOCTYPES.keys())
@each("used", [True, False])
def test_a_document_type_is_refused_before_it_means_anything(doctype: bytes, used: bool) -> None:
    content = GENUINE.sign(KEY)
    if used:
        content = content.replace(b">ann@example.com<", b">&who;<")

    assert refusal_of(doctype + content).code == "saml_xml"


# S16
@each("address", ["../x", "", "x y", "urn:a&amp;b", "urn:\N{LATIN SMALL LETTER E WITH ACUTE}"])
@each("place", [b"<saml:Assertion", b"<ds:SignedInfo"])
def test_a_namespace_that_canonicalisers_disagree_about_is_refused(place: bytes, address: str) -> None:
    def declare(text: str) -> bytes:
        return GENUINE.sign(KEY).replace(place, place + f' xmlns:void="{text}"'.encode(), 1)

    # An absolute one that is not used has no meaning, and no place in the canonical form.
    assert read_response(declare("urn:a"), EXPECTED)
    assert refusal_of(declare(address)).code == "saml_xml"


# S17
@each(
    ("change", "code"),
    [
        (lambda tree: tree.set("{urn:x}ID", "_x"), "saml_shape"),
        (lambda tree: saml.the(tree, "Assertion").set("{urn:x}ID", "_x"), "saml_shape"),
        (lambda tree: saml.the(tree, "Assertion").set("Id", "_x"), "saml_shape"),
        (lambda tree: saml.the(tree, "Assertion").set("id", "_x"), "saml_shape"),
        (lambda tree: saml.the(tree, "Assertion").set(XML_ID, "_x"), "saml_xml"),
        (lambda tree: saml.the(tree, "Attribute").set("Id", GENUINE.assertion_id), "saml_id_twice"),
        (lambda tree: saml.the(tree, "AttributeValue").set("{urn:x}iD", GENUINE.response_id), "saml_id_twice"),
        (lambda tree: saml.the(tree, "AuthnContext").set("ID", GENUINE.assertion_id), "saml_id_twice"),
    ],
)  # fmt: skip
def test_an_id_in_another_spelling_or_twice_is_refused(change: Callable[[Any], object], code: str) -> None:
    assert code_after(change) == code


# S17
@each("name", ["xpointer(/)", "a b", "\N{LATIN SMALL LETTER E WITH ACUTE}", "x" * 257])
def test_an_id_that_is_no_name_is_refused(name: str) -> None:
    tree = GENUINE.tree()
    saml.the(tree, "Assertion").set("ID", name)
    saml.sign_by_hand(saml.the(tree, "Assertion"), KEY)

    assert refusal_of(saml.to_bytes(tree)).code == "saml_id_twice"


# S41
MISPLACED = {
    "text between": lambda tree: setattr(saml.the(tree, "Subject"), "tail", "x"),
    "unknown element": lambda tree: saml.add(saml.the(tree, "Assertion"), saml.SAML, "Statement"),
    "subject twice": lambda tree: saml.the(tree, "Subject").addnext(copy.deepcopy(saml.the(tree, "Subject"))),
    "conditions twice": lambda tree: saml.the(tree, "Conditions").addnext(copy.deepcopy(saml.the(tree, "Conditions"))),
    "conditions first": lambda tree: saml.the(tree, "Subject").addprevious(saml.the(tree, "Conditions")),
    "no subject": lambda tree: saml.the(tree, "Assertion").remove(saml.the(tree, "Subject")),
    "no conditions": lambda tree: saml.the(tree, "Assertion").remove(saml.the(tree, "Conditions")),
    "unknown attribute": set_on("Subject", Mode="x"),
    "attribute without a name": set_on("Attribute", Name=None),
    "value of another kind": lambda tree: saml.add(saml.the(tree, "Attribute"), saml.SAML, "Value", "x"),
    "element of another namespace": lambda tree: setattr(saml.the(tree, "Subject"), "tag", "{urn:x}Subject"),
}


@each("change", MISPLACED.values(), ids=MISPLACED.keys())
def test_an_element_where_none_may_be_is_refused_though_it_is_signed(change: Callable[[Any], object]) -> None:
    assert code_after(change) == "saml_shape"


def test_statements_may_stand_in_the_orders_that_identity_providers_use() -> None:
    tree = GENUINE.tree()
    statement = saml.the(tree, "AuthnStatement")
    statement.getparent().append(statement)

    assert read_response(saml.sign_tree(tree, KEY), EXPECTED).groups == ("staff", "admins")


def test_an_answer_may_be_indented() -> None:
    tree = GENUINE.tree()
    saml.etree.indent(tree)

    assert read_response(saml.sign_tree(tree, KEY, "both"), EXPECTED).groups == ("staff", "admins")


def test_a_forged_copy_is_what_the_attacks_need() -> None:
    answer: Answer = GENUINE.but(name_id=EVIL)
    assert saml.the(forge(GENUINE.assertion()), "NameID").text == saml.the(answer.assertion(), "NameID").text
