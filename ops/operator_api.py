"""The local API as the operator's commands call it: with the platform key of this installation's file."""

import ssl
from collections.abc import Mapping
from typing import Any

import httpx
import msgspec

from custody.kit import environment as read
from ops.settings import Settings

_ANSWER_SECONDS = 30.0


class CallFailed(RuntimeError):
    """The API did not do it; the message says why, and what to do. `code` is the API's own word, if it said one."""

    def __init__(self, message: str, code: str = "") -> None:
        super().__init__(message)
        self.code = code


class Said(msgspec.Struct, frozen=True):
    """The answer of the API, and the number of rows in all where it was a list."""

    data: Any
    total: int | None

    def __repr__(self) -> str:
        return "Said()"


class OperatorApi:
    """One call after the other; each raises CallFailed unless it succeeded."""

    def __init__(self, settings: Settings) -> None:
        self._url = read.url(settings.environment, "SERVICE_URL", settings.api_url)
        self._key = _platform_key(settings)
        self._how_to_start = settings.how_to_start

    def call(self, method: str, path: str, body: Any = None, query: Mapping[str, Any] | None = None) -> Said:
        """Ask for something, or have it done."""
        asked = {name: value for name, value in (query or {}).items() if value is not None}
        try:
            # What is spoken to is on this machine, or named by the operator: no proxy of theirs stands between.
            with httpx.Client(trust_env=False, verify=_tls(self._url), timeout=_ANSWER_SECONDS) as client:
                answer = client.request(
                    method, self._url + path, json=body, params=asked, headers={"X-Service-Platform-Key": self._key}
                )
        except httpx.HTTPError as problem:
            raise CallFailed(
                f"the API does not answer at {self._url} ({problem or type(problem).__name__}); start it with "
                f"{self._how_to_start}, or set SERVICE_URL"
            ) from None
        return self._read(answer)

    def _read(self, answer: httpx.Response) -> Said:
        if answer.status_code == 401:
            raise CallFailed(
                f"the API at {self._url} rejects the platform key of this installation; check SERVICE_HOME, "
                "SERVICE_PLATFORM_KEY_FILE and SERVICE_URL"
            )
        try:
            said = msgspec.json.decode(answer.content)
            if answer.is_success:
                total = answer.headers.get("X-Total-Count", "")
                return Said(said["data"], int(total) if total.isdecimal() else None)
            reason, code = str(said["error"]), str(said["data"]["code"])
        except (msgspec.MsgspecError, LookupError, TypeError):
            raise CallFailed(f"{self._url} answered {answer.status_code}, and not as Custody does") from None
        raise CallFailed(reason, code)


def _platform_key(settings: Settings) -> str:
    file = settings.platform_key_file
    try:
        key = file.read_text("ascii").strip()
    except FileNotFoundError:
        raise CallFailed(
            f"there is no platform key at {file}: run this in the folder where Custody was started, or set "
            "SERVICE_HOME or SERVICE_PLATFORM_KEY_FILE"
        ) from None
    except OSError as problem:
        raise CallFailed(f"cannot read the platform key at {file}: {problem.strerror}") from None
    except UnicodeDecodeError:
        key = ""
    if not (key and key.isprintable()):
        raise CallFailed(f"{file} contains no platform key")
    return key


def _tls(url: str) -> ssl.SSLContext:
    """Trust what the caller's SSL_CERT_FILE and the system trust; over plain http nothing is read."""
    if url.startswith("http:"):
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    return ssl.create_default_context()
