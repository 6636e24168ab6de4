"""Asking a server of this machine: no proxy, and no reading of certificates, which costs more than the answer."""

import ssl
from pathlib import Path
from typing import Any

import httpx

NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def get(url: str, timeout: float = 5) -> httpx.Response:
    """Ask once."""
    with client(timeout=timeout) as http:
        return http.get(url)


def client(ca_file: Path | None = None, **given: Any) -> httpx.Client:
    """For several questions; with a file of authorities also over TLS."""
    verify = ssl.create_default_context(cafile=ca_file) if ca_file else NO_TLS
    return httpx.Client(verify=verify, trust_env=False, **given)
