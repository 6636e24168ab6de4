"""The console's server and identity, from arguments, profiles and the environment."""

from pathlib import Path

import pytest

from console.entry.settings import BadSetting, Settings, load

PROD = """
[profiles.prod]
url = "https://custody.example/"
tenant = "acme"
theme = "light"

[profiles.test]
url = "http://127.0.0.1:4000"
"""


def write_settings(folder: Path, text: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "console.toml").write_text(text)


def private(file: Path, text: str, mode: int = 0o600) -> Path:
    file.write_text(text)
    file.chmod(mode)
    return file


def refusal_of(folder: Path, *arguments: str, **environment: str) -> str:
    """The message of a start that is refused."""
    with pytest.raises(BadSetting) as caught:
        load(arguments, environment, folder)
    return str(caught.value)


def test_without_anything_it_is_the_service_of_this_machine(folder: Path) -> None:
    assert load([], {}, folder) == Settings("default", "http://127.0.0.1:3200", folder)


def test_a_profile_is_chosen_by_name(folder: Path) -> None:
    write_settings(folder, PROD)

    chosen = load(["--profile", "prod", "--read-only"], {"SERVICE_URL": "http://127.0.0.1:1"}, folder)

    assert (chosen.profile, chosen.url, chosen.tenant, chosen.theme, chosen.read_only) == (
        "prod",
        "https://custody.example",
        "acme",
        "light",
        True,
    )
    assert load(["--profile", "test"], {}, folder).url == "http://127.0.0.1:4000"


def test_without_a_name_the_environment_speaks(folder: Path, tmp_path: Path) -> None:
    write_settings(
        folder, f'[profiles.default]\nurl = "https://a.example"\nkey_file = "{private(tmp_path / "key", "file-key")}"'
    )

    spoken = load([], {"SERVICE_URL": "https://b.example", "SERVICE_KEY": "spoken-key"}, folder)

    assert (spoken.url, spoken.key, spoken.key_from) == ("https://b.example", "spoken-key", "SERVICE_KEY")
    silent = load([], {}, folder)
    assert (silent.url, silent.key) == ("https://a.example", "file-key")


def test_a_key_of_one_address_is_sent_to_no_other(folder: Path, tmp_path: Path) -> None:
    write_settings(
        folder, f'[profiles.default]\nurl = "https://a.example"\nkey_file = "{private(tmp_path / "key", "file-key")}"'
    )

    assert load([], {"SERVICE_URL": "https://b.example"}, folder).key is None
    assert load([], {"SERVICE_URL": "https://a.example"}, folder).key == "file-key"
    assert "has its key for https://a.example, not for https://b.example" in refusal_of(
        folder, "--url", "https://b.example"
    )
    assert "has its key for https://b.example" in refusal_of(
        folder, "--url", "https://c.example", SERVICE_URL="https://b.example", SERVICE_KEY="k"
    )
    # Key and address named in one breath belong together.
    assert load(["--url", "https://c.example"], {"SERVICE_KEY": "k"}, folder).key == "k"


def test_a_key_file_comes_before_a_key(folder: Path, tmp_path: Path) -> None:
    file = private(tmp_path / "key", "from-the-file\n")

    settings = load([], {"SERVICE_KEY_FILE": str(file), "SERVICE_KEY": "from-the-variable"}, folder)

    assert (settings.key, settings.key_from) == ("from-the-file", str(file))
    assert "from-the-file" not in repr(settings)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660])
def test_a_key_that_others_can_read_is_refused_with_the_cure(folder: Path, tmp_path: Path, mode: int) -> None:
    file = private(tmp_path / "key", "a-key", mode)

    assert f"run: chmod 600 {file}" in refusal_of(folder, SERVICE_KEY_FILE=str(file))


@pytest.mark.parametrize("mode", [0o620, 0o602])
def test_settings_that_others_can_change_are_refused_with_the_cure(folder: Path, mode: int) -> None:
    write_settings(folder, PROD)
    file = folder / "console.toml"
    file.chmod(mode)

    assert f"others can change {file}, so it is not used; run: chmod 600" in refusal_of(folder)
    file.chmod(0o644)
    assert load(["--profile", "prod"], {}, folder).tenant == "acme"


@pytest.mark.parametrize("content", ["", "two\nlines", "ümlaut", "\x1b[2J"])
def test_a_malformed_key_is_refused(folder: Path, tmp_path: Path, content: str) -> None:
    message = refusal_of(folder, SERVICE_KEY_FILE=str(private(tmp_path / "key", content)))

    assert "key_file" in message
    assert "contains no key" in message


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("[profiles.prod", ("console.toml", "cannot be read")),
        ('url = "https://a.example"', ("console.toml", "'url' is outside of a profile", "[profiles.prod]")),
        ("profiles = 1", ("console.toml", "must be tables")),
        ('[profiles.other]\nurl = "https://a.example"', ("no profile 'prod'", "it has other")),
        ("[profiles.prod]\nurl = 1", ("profile prod: url", "text in quotes")),
        ('[profiles.prod]\nurl = "custody.example"', ("profile prod: url", "https://custody.example")),
        ('[profiles.prod]\nurl = "https://a.example:port"', ("profile prod: url", "is not a service URL")),
        ('[profiles.prod]\nurl = "https://me:secret@a.example"', ("profile prod: url", "is not a service URL")),
        ('[profiles.prod]\nurl = "http://a.example"', ("profile prod: url", "use https")),
        ('[profiles.prod]\nkey = "secret"', ("profile prod", "key_file")),
        ('[profiles.prod]\ncolour = "red"', ("profile prod", "'colour'", "key_file, signing_key_file, tenant")),
        ('[profiles.prod]\ntheme = "pink"', ("profile prod: theme", "dark or light")),
        ('[profiles.prod]\nkey_file = "/no/such/file"', ("profile prod: key_file /no/such/file", "No such file")),
    ],
)
def test_a_mistake_is_named_by_file_field_and_cure(folder: Path, text: str, names: tuple[str, ...]) -> None:
    write_settings(folder, text)

    message = refusal_of(folder, "--profile", "prod")

    assert [name for name in names if name not in message] == [], message


def test_a_signing_key_has_an_id_a_secret_and_a_tenant(folder: Path, tmp_path: Path) -> None:
    file = private(tmp_path / "signing", "key-1:sk_secret:with-colon\n")
    write_settings(folder, f'[profiles.default]\ntenant = "acme"\nsigning_key_file = "{file}"')

    key = load([], {}, folder).signing_key

    assert key is not None
    assert (key.id, key.secret) == ("key-1", "sk_secret:with-colon")
    assert "sk_secret" not in repr(load([], {}, folder))
    write_settings(folder, f'[profiles.default]\nsigning_key_file = "{file}"')
    assert "signing_key_file requires tenant" in refusal_of(folder)
    private(file, "no-colon")
    assert "keyId:secret" in refusal_of(folder)


def test_no_key_is_taken_from_the_arguments(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        load(["--key", "secret"], {}, folder)

    assert "unrecognized arguments: --key" in capsys.readouterr().err
