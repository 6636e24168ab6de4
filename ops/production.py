"""The demands of SERVICE_ENV=production beyond those of development, told all at once."""

import os
from urllib.parse import urlsplit

from custody.kit import environment
from ops import places
from ops.settings import Settings


def missing(settings: Settings) -> list[str]:
    """List what is still to be done, as sentences; empty when production may start."""
    return [sentence for need in (_uids, _public_url, _platform_key) if (sentence := need(settings))]


def _uids(settings: Settings) -> str | None:
    if os.geteuid() != 0:
        return "start it as root: each process then gets its own unprivileged uid, which protects the keys"
    # The first start makes what is not there yet.
    parent = next(folder for folder in settings.home.resolve().parents if folder.exists())
    if not places.enterable(parent):
        return f"set SERVICE_HOME to a folder below one that other users can enter; {parent} is closed to them"
    return None


def _public_url(settings: Settings) -> str | None:
    if urlsplit(environment.public_url(settings.environment)).scheme == "https":
        return None
    return "set SERVICE_PUBLIC_URL to the https address under which people reach the API"


def _platform_key(settings: Settings) -> str | None:
    file, identity = settings.platform_key_file, places.uids(settings.uid_base)["identity"]
    how = f"32 to 256 random characters, mode 0600, owner uid {identity}"
    if settings.home.resolve() in file.resolve().parents or settings.home in file.parents:
        return f"set SERVICE_PLATFORM_KEY_FILE to a key that you made, outside the state folder ({how})"
    if not file.is_file():
        return f"put the platform key into {file} ({how})"
    if file.stat().st_uid != identity or file.stat().st_mode & 0o077:
        return f"chown {identity} {file} && chmod 0600 {file}"
    return None
