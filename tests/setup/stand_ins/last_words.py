"""The last line of a stand-in when it is told to stop: whether what it leans on is still there."""

import os
import socket
from urllib.parse import parse_qs, urlsplit

from custody.kit import environment


def signer_is_there() -> int:
    """Say whether the signer still listens."""
    return _say("signer", os.environ["SERVICE_SIGN_SOCKET"])


def postgres_is_there() -> int:
    """Say whether Postgres still listens."""
    folder = parse_qs(urlsplit(environment.url_from_home(os.environ, "signer")).query)["host"][0]
    return _say("postgres", f"{folder}/.s.PGSQL.5432")


def _say(name: str, path: str) -> int:
    with socket.socket(socket.AF_UNIX) as connection:
        print(f"{name} there: {connection.connect_ex(path) == 0}", flush=True)
    return 0
