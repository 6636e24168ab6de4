"""The pages on the API say what the code does: every code of an error, and the headers that answers carry."""

import re

from api.http.contract import headers
from tests.structure import errors_page

API = (errors_page.PAGE.parent / "api.md").read_text()


def test_every_code_of_an_error_is_on_its_page() -> None:
    assert errors_page.PAGE.read_text() == errors_page.page(), "run make openapi"


def test_a_cause_on_the_page_is_a_whole_sentence() -> None:
    causes = re.findall(r"^\| `(\w+)` \| [\d, ]+ \| (.*) \|$", errors_page.page(), flags=re.MULTILINE)

    cut = {code for code, said in causes for one in said.split(" Or: ") if not one.endswith(".")}
    # Its sentence is one that clients compare.
    assert cut == {"import_session_invalid"}


def test_the_page_names_every_header_of_an_answer() -> None:
    named = set(re.findall(r"`([A-Z][A-Za-z-]+)`", API))

    assert set(headers.HEADERS) <= named


def test_the_codes_that_the_page_names_exist() -> None:
    known = set(re.findall(r"^\| `(\w+)`", errors_page.page(), flags=re.MULTILINE))

    assert set(re.findall(r"`(?:\d{3} )?([a-z]+(?:_[a-z]+)+)`", API)) <= known
