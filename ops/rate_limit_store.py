"""The check whether the store that counts requests for several processes answers."""

import socket
from urllib.parse import urlsplit

from ops.settings import Settings

_SECONDS = 2.0
_PORT = 6379


def complaint(settings: Settings) -> str | None:
    """A sentence if nobody answers at SERVICE_RATE_LIMIT_STORE; its address may have a password and is not repeated."""
    url = settings.environment.get("SERVICE_RATE_LIMIT_STORE", "").strip()
    if url in {"", "memory"}:
        return None
    parts = urlsplit(url)
    try:
        socket.create_connection((parts.hostname or "", parts.port or _PORT), _SECONDS).close()
    except (OSError, ValueError) as problem:
        where = f"{parts.hostname}:{parts.port or _PORT}"
        reason = getattr(problem, "strerror", None) or problem
        return f"SERVICE_RATE_LIMIT_STORE: no response from {where} ({reason}); each process counts alone"
    return None
