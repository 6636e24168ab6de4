"""SQL: each function has one text, in the form of docs/recipes.md, and no migration holds one."""

import re
from pathlib import Path

import pytest

from custody.database.texts import BadText, parse, read

ROOT = Path(__file__).parents[2]
FUNCTION = """-- Promises: Nothing, and says so
--   in two lines.
-- Runs as: caller
-- Execute: api, signer

CREATE FUNCTION example() RETURNS integer
LANGUAGE sql AS $$
  SELECT 1
$$;
"""


def test_a_file_says_what_it_promises_and_who_may_call_it() -> None:
    text = parse("example", FUNCTION)

    assert text.promise == "Nothing, and says so in two lines."
    assert (text.runs_as, text.execute, text.needed_by_tables) == ("caller", ("api", "signer"), False)
    assert text.signature == "CREATE FUNCTION example() RETURNS integer"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("-- Promises: Nothing, and says so\n", ""),
        ("Runs as: caller", "Runs as: definer"),
        ("api, signer", "api, root"),
        ("FUNCTION example", "FUNCTION another"),
        ("LANGUAGE sql AS", "LANGUAGE sql SECURITY DEFINER AS"),
        ("$$;\n", "$$;\nGRANT EXECUTE ON FUNCTION example TO PUBLIC;\n"),
        ("AS $$\n  SELECT 1\n$$;", "BEGIN ATOMIC SELECT 1; END;"),
    ],
)
def test_a_file_of_another_form_is_refused(old: str, new: str) -> None:
    assert old in FUNCTION

    with pytest.raises(BadText):
        parse("example", FUNCTION.replace(old, new))


def test_no_migration_makes_a_function_or_a_type() -> None:
    made = re.compile(r"CREATE (?:OR REPLACE )?(?:FUNCTION|PROCEDURE|TYPE)\b")
    files = sorted((ROOT / "custody/migrations").glob("*.sql"))
    assert files
    assert [file.name for file in files if made.search(file.read_text())] == []


def test_no_line_of_a_function_is_wider_than_a_line_of_python() -> None:
    files = (ROOT / "custody/database").rglob("*.sql")
    wide = [
        f"{file.relative_to(ROOT)}:{number}"
        for file in files
        for number, line in enumerate(file.read_text().splitlines(), 1)
        if len(line) > 120 or line != line.rstrip()
    ]
    assert wide == []


def test_only_finish_act_refuses_a_taken_key() -> None:
    assert {text.name for text in read() if "CU001" in text.sql} == {"finish_act"}


def test_no_payload_of_an_event_is_put_together_in_sql() -> None:
    assert {text.name for text in read() if "json_build_object" in text.sql} <= {"slot_of"}
