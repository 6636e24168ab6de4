"""Profiles that are written beside what people wrote themselves."""

import tomllib
from pathlib import Path

import pytest

from console.entry.profiles import keep_profile
from console.entry.settings import BadSetting

URL = "https://custody.example"


def test_a_profile_is_added_below_what_is_there(tmp_path: Path) -> None:
    file = tmp_path / "console.toml"
    file.write_text('# Mine\n[profiles.default]\nurl = "http://127.0.0.1:3200"')
    file.chmod(0o600)

    assert keep_profile(tmp_path, "wo\x7frk", URL, 'ac"me')
    assert not keep_profile(tmp_path, "default", URL, "acme")
    assert file.read_text().startswith("# Mine\n[profiles.default]\n")
    assert tomllib.loads(file.read_text())["profiles"]["wo\x7frk"] == {"url": URL, "tenant": 'ac"me'}


def test_a_file_to_which_no_table_can_be_added_stays_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "console.toml"
    text = 'profiles = {default = {url = "http://127.0.0.1:3200"}}\n'
    file.write_text(text)
    file.chmod(0o600)

    with pytest.raises(BadSetting, match="write the profile yourself"):
        keep_profile(tmp_path, "work", URL, "acme")
    assert file.read_text() == text
