"""The holders of the master key's file: the kinds that are to be asked, and who the head of the file names."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from custody.kit import key_head
from custody.kit.environment import BadSetting
from custody.kit.key_head import MAX_FILE, Head
from custody.kit.opener_settings import SETTINGS

SOURCE: Final = "SERVICE_MASTER_KEY_SOURCE"
UNLOCK: Final = "SERVICE_MASTER_KEY_UNLOCK"


def kinds_of(environment: Mapping[str, str]) -> tuple[str, ...]:
    """The kinds of holder that are asked, in order; none where the file is a plain one."""
    given = [word.strip() for word in environment.get(SOURCE, "").split(",") if word.strip()]
    if given in ([], ["file"]):
        return ()
    if unknown := [word for word in given if word not in SETTINGS]:
        raise BadSetting(SOURCE, f"has no kind {unknown[0]}: file, or of {', '.join(sorted(SETTINGS))}, in order")
    return tuple(dict.fromkeys(given))


def read_head(file: Path) -> Head | None:
    """The head of a master key file; None of a plain one, or where there is none."""
    found = read_sealed(file)
    return None if found is None else key_head.split(found)[0]


def read_sealed(file: Path) -> bytes | None:
    """The whole of a sealed master key file; None of a plain one, or where there is none."""
    try:
        with file.open("rb") as content:
            found = content.read(MAX_FILE + 1)
    except FileNotFoundError:
        return None
    return found if key_head.is_sealed(found) else None
