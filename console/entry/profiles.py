"""Writing a profile that a person has signed in to, beside what they wrote into the file themselves."""

import tomllib
from pathlib import Path
from typing import Any

import msgspec

from console import private_file
from console.entry.settings import BadSetting


def has_profile(folder: Path, name: str) -> bool:
    """Tell whether the file has it; raises BadSetting where the file cannot be used."""
    return name in _read(folder / "console.toml")[1]


def keep_profile(folder: Path, name: str, url: str, tenant: str) -> bool:
    """Write a profile that is not there yet; tells whether it did. Nothing that is there is changed."""
    file = folder / "console.toml"
    text, profiles = _read(file)
    if name in profiles:
        return False
    # TOML's basic strings are JSON's, but for DEL, which JSON leaves as it is.
    quoted = [msgspec.json.encode(word).decode().replace("\x7f", "\\u007f") for word in (name, url, tenant)]
    added = f"[profiles.{quoted[0]}]\nurl = {quoted[1]}\ntenant = {quoted[2]}\n"
    whole = f"{text.rstrip()}\n\n{added}" if text.strip() else added
    try:
        tomllib.loads(whole)
    except ValueError:
        # Tables may be written in a way to which none can be added below.
        raise BadSetting(f"{file}: write the profile yourself, for none can be added to it: {added!r}") from None
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    private_file.write(file, whole)
    return True


def _read(file: Path) -> tuple[str, dict[str, Any]]:
    try:
        text = private_file.read(file, secret=False)
        found = tomllib.loads(text).get("profiles", {})
    except FileNotFoundError:
        return "", {}
    except private_file.Exposed as problem:
        raise BadSetting(str(problem)) from None
    except (OSError, ValueError) as problem:
        raise BadSetting(f"{file} cannot be read: {problem}") from None
    return text, found if isinstance(found, dict) else {}
