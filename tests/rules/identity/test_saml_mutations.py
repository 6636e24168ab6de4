"""However an answer is changed after it was signed: it is refused, or says exactly what was signed.

`make reliability` tries a hundred thousand changes of bytes and as many of the tree.
"""

import copy
from collections.abc import Callable
from random import Random
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from custody.identity.saml_refusals import SamlRefused
from identity.saml.response import read_response
from tests.fixtures.each import each
from tests.fixtures.thorough import THOROUGH
from tests.outside import saml_answers as saml
from tests.outside.xml_documents import change_place
from tests.rules.identity.test_saml_response import EXPECTED, GENUINE, KEY

MANY = settings(max_examples=1_000 if THOROUGH == 1 else 4_000 * THOROUGH, deadline=None)
P256 = saml.key("p256")
BOTH = msgspec.structs.replace(EXPECTED, certificates=(KEY.certificate, P256.certificate))
RICH = GENUINE.but(attributes={"groups": ["staff", "a&b<c>"], "email": ["ann@example.com"]})
ANSWERS = [RICH.sign(KEY), RICH.sign(P256, "both"), saml.sign_tree(RICH.tree(), KEY, "both", "#default saml xs")]
TREES = [saml.etree.fromstring(answer) for answer in ANSWERS]
SAID = read_response(ANSWERS[0], BOTH)
chances = st.randoms(use_true_random=True)


def judge(content: bytes) -> None:
    try:
        said = read_response(content, BOTH)
    except SamlRefused:
        return
    assert said == SAID


def test_the_genuine_answers_are_accepted_and_alike() -> None:
    assert [read_response(answer, BOTH) for answer in ANSWERS] == [SAID] * 3


@MANY
@given(chances)
def test_a_changed_byte_is_refused_or_means_nothing(random: Random) -> None:
    content = bytearray(random.choice(ANSWERS))
    content[random.randrange(len(content))] ^= 1 << random.randrange(8)

    judge(bytes(content))


@MANY
@given(chances)
def test_a_place_that_was_changed_is_refused_or_means_nothing(random: Random) -> None:
    content = random.choice(ANSWERS)
    for _ in range(random.randint(1, 3)):
        content = change_place(random, content)

    judge(content)


def elements(tree: Any) -> list[Any]:
    return [one for one in tree.iter() if one.getparent() is not None]


def copy_element(random: Random, tree: Any) -> None:
    one = copy.deepcopy(random.choice(elements(tree)))
    place = random.choice(list(tree.iter()))
    place.insert(random.randint(0, len(place)), one)


def move(random: Random, tree: Any) -> None:
    one = random.choice(elements(tree))
    places = [place for place in tree.iter() if one not in (place, *place.iterancestors())]
    place = random.choice(places)
    place.insert(random.randint(0, len(place)), one)


def remove(random: Random, tree: Any) -> None:
    one = random.choice(elements(tree))
    one.getparent().remove(one)


def rename(random: Random, tree: Any) -> None:
    names = [one.tag for one in tree.iter()]
    random.choice(list(tree.iter())).tag = random.choice(names)


def said_otherwise(random: Random, tree: Any) -> None:
    random.choice(list(tree.iter())).text = random.choice(["", " ", "eve@example.com", GENUINE.sp_entity_id, "x"])


def with_another_value(random: Random, tree: Any) -> None:
    one = random.choice(list(tree.iter()))
    name = random.choice([*one.attrib, "ID", "Id", "Format", "Name"])
    one.set(name, random.choice(["", "_assertion1", "_response1", "_other", saml.EMAIL, "2026-01-01T12:09:00Z"]))


CHANGES: tuple[Callable[[Random, Any], None], ...] = (
    copy_element,
    move,
    remove,
    rename,
    said_otherwise,
    with_another_value,
)


@MANY
@given(chances)
def test_a_changed_tree_is_refused_or_means_nothing(random: Random) -> None:
    tree = copy.deepcopy(random.choice(TREES))
    for _ in range(random.randint(1, 3)):
        random.choice(CHANGES)(random, tree)

    judge(saml.to_bytes(tree))


@each("change", CHANGES, ids=lambda change: change.__name__)
def test_each_kind_of_change_makes_another_document(change: Callable[[Random, Any], None]) -> None:
    tree = copy.deepcopy(TREES[0])
    change(Random(1), tree)

    assert saml.to_bytes(tree) != saml.to_bytes(TREES[0])
