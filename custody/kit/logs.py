"""Structured logs: one JSON object a line, with a filter that blanks what looks like a secret.

The filter is the second line of defence. The first is that nothing secret is handed to a logger.
"""

import logging
import re
import sys
from typing import Any

import msgspec

from custody.kit import clock

# What our own credentials begin with: keys of tenants and of the platform, secrets of app clients and for signing
# requests, refresh tokens, device codes, secrets of webhooks and of others.
_KINDS = ("ck", "pk", "as", "rsk", "rt", "dc", "svs", "whsec", "sk")
_SECRET = re.compile(
    # A JWT, or what begins like one: looked for a dot from each beginning, a long text would take time by its square.
    r"eyJ[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*)?"
    # Our own credentials, in a word of their own, or after a line end in JSON.
    rf"|(?:(?<![A-Za-z0-9])|(?<=\\[nrt]))(?:{'|'.join(_KINDS)})_[A-Za-z0-9_\-+/=]{{16,}}"
    r"|(?<=://)[^/\s:@]+:[^/\s@]+(?=@)"  # user and password in an address
)
# Whatever is blanked has one of these. Most lines have none, and looking for these takes a tenth of the time.
_MARKS = ("eyJ", "://", *(f"{kind}_" for kind in _KINDS))
_STANDARD = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName", "color_message"}


def redact(text: str) -> str:
    """Blank JWTs, our keys, and passwords in URLs."""
    return _SECRET.sub("[redacted]", text) if any(mark in text for mark in _MARKS) else text


class _JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": clock.iso(clock.now()),
            "level": record.levelname.lower(),
            "process": record.name.split(".")[0],
            "event": record.getMessage(),
        }
        line |= {key: value for key, value in record.__dict__.items() if key not in _STANDARD}
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return redact(msgspec.json.encode(line, enc_hook=str).decode())


def set_up(level: str = "INFO") -> None:
    """Send all logs of this process to standard error as JSON lines."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_JsonLines())
    # What nobody reads is not collected: this halves the cost of a line.
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    root = logging.getLogger()  # noqa: TID251 - this is the place
    root.handlers = [handler]
    root.setLevel(level)
    for noisy in ("sanic.access", "httpx", "httpcore", "apscheduler", "asyncio"):
        logging.getLogger(noisy).setLevel(logging.WARNING)  # noqa: TID251


def logger(name: str) -> logging.Logger:
    """The logger of a module; extra fields go in `extra={...}`."""
    return logging.getLogger(name)  # noqa: TID251 - this is the place
