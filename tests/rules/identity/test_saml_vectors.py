"""docs/saml.md and the code agree: the vectors come out as listed, and the page has every check, code and bound."""

import ast
import json
import re
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from custody.identity import saml_refusals
from custody.identity.saml_refusals import CHECKS, NAMES, SamlRefused
from identity.saml import strict_xml, xml_text
from identity.saml import times as saml_times
from identity.saml.attributes import EMAIL_ATTRIBUTES
from identity.saml.response import read_response
from identity.saml.types import Expected
from tests.fixtures.each import each

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "tests/vectors/saml"
PAGE = (ROOT / "docs/saml.md").read_text()
VECTORS: dict[str, Any] = json.loads((FOLDER / "vectors.json").read_text())
GIVEN = VECTORS["expected"]
EXPECTED = Expected(
    idp_entity_id=GIVEN["idpEntityId"],
    sp_entity_id=GIVEN["spEntityId"],
    acs_url=GIVEN["acsUrl"],
    request_id=GIVEN["requestId"],
    certificates=tuple(GIVEN["idpCertPems"]),
    groups_attribute=GIVEN["groupsAttribute"],
    now=datetime.fromisoformat(GIVEN["now"]),
)


def rows(heading: str) -> list[list[str]]:
    section = PAGE.split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]
    lines = [line for line in section.splitlines() if line.startswith("| ")][1:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def codes() -> set[str]:
    """Every code that our modules can refuse an answer with."""
    files = [*(ROOT / "custody/identity").glob("saml_*.py"), *(ROOT / "identity/saml").glob("*.py")]
    texts = (
        node.value for file in files for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Constant)
    )
    return {text for text in texts if isinstance(text, str) and re.fullmatch(r"saml_[a-z0-9_]+", text)}


@each("name", VECTORS["accepted"])
def test_an_answer_of_the_vectors_says_what_is_listed(name: str) -> None:
    said = read_response((FOLDER / f"{name}.xml").read_bytes(), EXPECTED)

    assert {
        "assertionId": said.assertion_id,
        "nameId": said.name_id,
        "nameIdFormat": said.name_id_format,
        "email": said.email,
        "groups": list(said.groups),
        "notOnOrAfter": said.not_on_or_after.isoformat(),
        "sessionNotOnOrAfter": said.session_not_on_or_after and said.session_not_on_or_after.isoformat(),
        "authnInstant": said.authn_instant.isoformat(),
    } == VECTORS["accepted"][name]


@each("name", VECTORS["refused"])
def test_an_answer_of_the_vectors_is_refused_as_listed(name: str) -> None:
    with pytest.raises(SamlRefused) as caught:
        read_response((FOLDER / f"{name}.xml").read_bytes(), EXPECTED)

    assert {"code": caught.value.code, "check": caught.value.check} == VECTORS["refused"][name]


def test_the_folder_holds_the_listed_vectors_and_no_others() -> None:
    listed = {f"{name}.xml" for kind in ("accepted", "refused") for name in VECTORS[kind]}
    assert {file.name for file in FOLDER.iterdir()} == listed | {"vectors.json"}


def test_the_page_lists_the_checks_in_their_order() -> None:
    assert [(row[1].strip("`"), row[2]) for row in rows("3. Checks, in order")] == [tuple(check) for check in CHECKS]


def test_the_page_lists_every_code_once_with_its_check_and_cure() -> None:
    listed = [row[0].strip("`") for row in rows("8. Codes")]
    assert sorted(listed) == sorted(codes())
    order = [NAMES.index(row[1].strip("`")) for row in rows("8. Codes")]
    assert order == sorted(order)
    assert all(row[2] and row[3] for row in rows("8. Codes"))


def test_the_page_says_the_bounds_and_names_of_the_code() -> None:
    text = " ".join(PAGE.split())
    for said in (
        f"{xml_text.MAX_BYTES // 1024} KiB",
        f"{xml_text.MAX_ELEMENTS:,} elements",
        f"{strict_xml.MAX_ATTRIBUTES:,} attributes in all",
        f"{strict_xml.MAX_ATTRIBUTES_EACH} attributes of one element",
        f"{strict_xml.MAX_DEPTH} elements inside one another",
        f"{saml_times.SKEW.seconds} seconds",
        f"{saml_times.MAX_AGE.seconds // 60} minutes",
        f"{saml_refusals.MAX_SHOWN} printable characters",
        *(f"`{name}`" for name in EMAIL_ATTRIBUTES),
    ):
        assert said in text, said
