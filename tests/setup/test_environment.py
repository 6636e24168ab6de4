"""A wrong variable stops the start with its own name in the message. Decisions 2."""

from pathlib import Path

import pytest

from custody.kit import environment
from custody.kit.environment import BadSetting


def test_an_empty_value_counts_as_unset() -> None:
    assert environment.text({"SERVICE_X": " "}, "SERVICE_X", "default") == "default"


@pytest.mark.parametrize("value", ["-1", "1.5", "abc", "70000", "٣", "1_0"])
def test_a_port_that_is_none_is_refused_by_name(value: str) -> None:
    with pytest.raises(BadSetting, match="SERVICE_API_PORT"):
        environment.port({"SERVICE_API_PORT": value}, "SERVICE_API_PORT", 3200)


@pytest.mark.parametrize(("value", "expected"), [("true", True), ("0", False), ("", True)])
def test_a_flag_reads_the_usual_words(value: str, expected: bool) -> None:
    assert environment.flag({"F": value}, "F", default=True) is expected


def test_a_flag_of_another_word_is_refused() -> None:
    with pytest.raises(BadSetting, match="F: must be true or false"):
        environment.flag({"F": "maybe"}, "F", default=True)


def test_a_process_finds_its_address_in_the_state_folder(tmp_path: Path) -> None:
    (tmp_path / "db").mkdir()
    (tmp_path / "db" / "api.url").write_text("postgresql://x\n")

    assert environment.url_from_home({"SERVICE_HOME": str(tmp_path)}, "api") == "postgresql://x"


def test_a_missing_address_names_the_command_that_writes_it(tmp_path: Path) -> None:
    with pytest.raises(BadSetting, match=r"SERVICE_DATABASE_URL_API.*custody migrate"):
        environment.url_from_home({"SERVICE_HOME": str(tmp_path)}, "api")
