"""The address, the groups and the role that an answer gives a person."""

from typing import Any

import pytest

from custody.identity.saml_groups import ORDER, GroupMapping, GroupMappingRefused, check_mappings, role_for
from identity.saml.attributes import EMAIL_ATTRIBUTES
from identity.saml.response import read_response
from tests.fixtures.each import each
from tests.outside import saml_answers as saml
from tests.outside.saml_answers import Answer
from tests.rules.identity.test_saml_response import EXPECTED, GENUINE, KEY, accept, refusal_of

NAMELESS = GENUINE.but(name_id_format=saml.PERSISTENT, name_id="p-1", attributes={})


def address(answer: Answer, **expected: Any) -> tuple[str | None, str]:
    said = accept(answer, **expected)
    return said.email, said.email_missing


def test_the_name_id_is_the_address_where_its_format_says_so() -> None:
    assert address(GENUINE) == ("ann@example.com", "")
    assert address(GENUINE.but(attributes={"email": ["other@example.com"]})) == ("ann@example.com", "")
    assert address(GENUINE.but(name_id_format=None))[0] is None


@each("name", EMAIL_ATTRIBUTES)
def test_one_of_five_attributes_is_the_address_where_the_name_id_is_none(name: str) -> None:
    assert address(NAMELESS.but(attributes={name: ["Ann@Example.com"]})) == ("Ann@Example.com", "")


def test_the_configured_attribute_is_the_only_one_that_is_read() -> None:
    both = {"email": ["ann@example.com"], "work": ["bea@example.com"]}

    assert address(GENUINE.but(attributes=both), email_attribute="work") == ("bea@example.com", "")
    assert address(GENUINE.but(attributes=both), email_attribute="Work") == (
        None,
        "The attribute Work has 0 values, and must have exactly one e-mail address.",
    )


# S35
@each(
    "values",
    [
        ["ann@example.com", "eve@example.com"],
        ["ann@example.com", "ann@example.com", "eve@example.com"],
        ["ann@example.com", ""],
        [],
        [""],
        ["ann@example.com@evil.example"],
        ["=?utf-8?q?=76ictim?=@example.com"],
        ["ann@ex\N{CYRILLIC SMALL LETTER A}mple.com"],
        ["ann@example.com\n eve@example.com"],
        ["ann @example.com"],
        ["ann@example.com\u00a0"],
        ["ann@example.com\x7f"],
        ["Ann <ann@example.com>"],
    ],
)
def test_an_attribute_that_is_not_exactly_one_address_gives_none_and_says_why(values: list[str]) -> None:
    assert address(NAMELESS.but(attributes={"email": ["ann@example.com"]}))[0]
    email, missing = address(NAMELESS.but(attributes={"email": values}))

    assert email is None
    assert missing.startswith("The attribute email ")
    assert missing.isprintable()


@each(
    "values",
    [
        ["ann@example.com\n"],
        ["\n      ann@example.com\n    "],
        [" ann@example.com\t"],
        ["ann@example.com", "ann@example.com"],
        ["ann@example.com", "\n  Ann@Example.com"],
    ],
)
def test_one_address_is_one_however_it_is_printed_and_repeated(values: list[str]) -> None:
    assert address(NAMELESS.but(attributes={"email": values})) == ("ann@example.com", "")
    assert address(NAMELESS.but(attributes={"work": values}), email_attribute="work") == ("ann@example.com", "")


def test_an_indented_name_id_and_group_are_what_they_are_without_it() -> None:
    plain = accept(GENUINE.but(attributes={"groups": ["staff"]}))
    printed = accept(GENUINE.but(name_id="\n        ann@example.com\n      ", attributes={"groups": ["\n  staff\n"]}))

    assert (printed.name_id, printed.email, printed.groups) == (plain.name_id, plain.email, plain.groups)
    # Blanks alone may be part of a group's name, which is then another group.
    assert accept(GENUINE.but(attributes={"groups": [" staff", "staff "]})).groups == (" staff", "staff ")


# S35
def test_two_attributes_of_one_name_are_two_values() -> None:
    tree = NAMELESS.but(attributes={"email": ["ann@example.com"]}).tree()
    twin = saml.add(saml.the(tree, "AttributeStatement"), saml.SAML, "Attribute", Name="email")
    saml.add(twin, saml.SAML, "AttributeValue", "eve@example.com")

    assert read_response(saml.sign_tree(tree, KEY), EXPECTED).email is None


def test_an_attribute_with_an_element_as_a_value_is_not_used_at_all() -> None:
    tree = NAMELESS.but(attributes={"email": ["ann@example.com", "x"]}).tree()
    saml.add(list(tree.iter("{*}AttributeValue"))[1], saml.SAML, "NameID", "eve@example.com")
    said = read_response(saml.sign_tree(tree, KEY), EXPECTED)

    assert (said.email, dict(said.attributes)) == (None, {})
    assert said.warnings == ("The attribute email has a value that is not a text, and is not used.",)


# S37
def test_groups_are_read_in_their_order_without_empty_ones() -> None:
    answer = GENUINE.but(attributes={"groups": ["b", "", "a", "A"]})

    assert accept(answer).groups == ("b", "a", "A")
    assert accept(answer, groups_attribute="roles").groups == ()
    assert accept(answer, groups_attribute=None).groups == ()


def test_groups_that_entra_leaves_out_are_a_warning() -> None:
    answer = GENUINE.but(attributes={"http://schemas.microsoft.com/claims/groups.link": ["https://graph.example"]})

    assert "Entra" in accept(answer).warnings[0]


# S37
def test_ten_thousand_groups_are_matched_or_refused_by_the_bounds() -> None:
    mappings = [GroupMapping(f"g{number}", "admin") for number in range(100)]
    assert role_for([f"h{number}" for number in range(10_000)], mappings) == "viewer"

    assert refusal_of(GENUINE.but(attributes={"groups": ["g"] * 10_000}).sign(KEY)).code == "saml_xml"
    many = [f"{number:04}" for number in range(1_000)]
    assert accept(GENUINE.but(attributes={"groups": many})).groups == tuple(many)


MAPPINGS = [GroupMapping("staff", "member"), GroupMapping("Ops", "developer"), GroupMapping("Ops", "billing")]


# S37
@each(
    ("groups", "role"),
    [
        ((), "viewer"),
        (("unknown",), "viewer"),
        (("staff",), "member"),
        (("Ops",), "developer"),
        (("staff", "Ops"), "developer"),
        (("ops",), "viewer"),
        (("Ops ",), "viewer"),
        (("",), "viewer"),
    ],
)
def test_the_most_powerful_mapping_of_a_group_counts_and_viewer_where_none_does(groups: Any, role: str) -> None:
    assert role_for(groups, MAPPINGS) == role


def test_each_role_gives_way_to_those_before_it() -> None:
    assert [role_for(["g"], [GroupMapping("g", role) for role in ORDER[at:]]) for at in range(len(ORDER))] == [*ORDER]
    # Such a mapping cannot be kept; were it there, it would give nothing.
    assert role_for(["g"], [GroupMapping("g", "owner")]) == "viewer"


# S37
@each(
    ("mappings", "says"),
    [
        ([GroupMapping("g", "viewer"), GroupMapping("o", "owner")], r"groupRoleMappings\[1\].role must not be owner"),
        ([GroupMapping("", "viewer")], r"groupRoleMappings\[0\].group must be"),
        ([GroupMapping(" ", "viewer")], r"groupRoleMappings\[0\].group must be"),
        ([GroupMapping("g" * 257, "viewer")], r"groupRoleMappings\[0\].group must be"),
        ([GroupMapping("g", "viewer")] * 101, "more than 100"),
    ],
)
def test_a_mapping_that_cannot_be_kept_is_refused_with_the_cure(mappings: list[GroupMapping], says: str) -> None:
    check_mappings(MAPPINGS)
    with pytest.raises(GroupMappingRefused, match=says):
        check_mappings(mappings)
