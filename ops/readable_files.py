"""The check that a process can read its settings' files: asked under its uid, because root can read them all."""

import contextlib
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from custody.kit import environment as read
from custody.kit import oauth_endpoints
from custody.kit.environment import BadSetting
from ops import database_addresses

_PRICES, _PRICES_KEY = "SERVICE_PRICES_FILE", "SERVICE_PRICES_KEY_FILE"
_CHAINS, _QUOTAS, _TRUSTED = "SERVICE_CHAINS_FILE", "SERVICE_QUOTAS_FILE", "SSL_CERT_FILE"
# The files that each process reads, by their variables.
_NAMED: Final = {
    "signer": ("SERVICE_MASTER_KEY_FILE", _CHAINS, _QUOTAS, "SERVICE_USER_WALLET_POLICIES_FILE", _PRICES, _PRICES_KEY),
    "identity": ("SERVICE_PLATFORM_KEY_FILE", _CHAINS, _QUOTAS, oauth_endpoints.FILE),
    "api": (_CHAINS, _QUOTAS, "SERVICE_TENANT_PRESETS_FILE", _PRICES),
    "scheduler": (_CHAINS, "SERVICE_WEBHOOK_EXTRA_CA_FILE"),
    "proxy": ("SERVICE_PROXY_CA_FILE", "SERVICE_PROXY_CA_KEY_FILE", "SERVICE_PROXY_EXTRA_CA_FILE"),
}
# No `-r` for each file in a process of its own: one says the places of those that it cannot read.
_ASK: Final = 'place=0; for file; do [ -r "$file" ] || echo "$place"; place=$((place + 1)); done'


def insist(process: str, environment: Mapping[str, str], uid: int) -> None:
    """BadSetting with the variable of the first file that is there and that this uid cannot read."""
    found = [(name, file) for name, file in _files(process, environment) if file.exists()]
    for place in _unreadable([file for _, file in found], uid):
        name, file = found[place]
        cure = f"give uid {uid} the right to read it, and to pass through every folder on the way"
        raise BadSetting(name, f"{process} cannot read {file}: {cure}")


def _files(process: str, environment: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    for name in (*_NAMED.get(process, ()), _TRUSTED):
        if environment.get(name, "").strip():
            yield name, read.path(environment, name, "")
    name = f"SERVICE_DATABASE_URL_{process.upper()}"
    # Without an address there is nothing to connect to either, and the process says so.
    with contextlib.suppress(BadSetting):
        of_address = name if environment.get(name, "").strip() else "SERVICE_DATABASE_URL"
        authority = environment.get(database_addresses.CA_FILE, "").strip()
        for file in database_addresses.files(read.url_from_home(environment, process)):
            yield database_addresses.CA_FILE if authority and file == Path(authority) else of_address, file


def _unreadable(files: Sequence[Path], uid: int) -> list[int]:
    """The places of those that a process of this uid cannot read: the kernel is asked, which knows every rule."""
    if not files:
        return []
    asked = subprocess.run(  # noqa: S603 - our own words; the files are arguments
        ["/bin/sh", "-c", _ASK, "sh", *files],
        env={"PATH": os.defpath},
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        user=uid,
        group=uid,
        extra_groups=[],
    )
    return [int(place) for place in asked.stdout.split()]
