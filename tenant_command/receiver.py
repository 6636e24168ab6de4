"""A developer's own receiver of events: the one place where this command posts to what is not the service.

Nothing that says who asks the service comes here, and nothing but the head of an answer is read.
"""

import asyncio
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Final, Literal

import httpx

from console.wire.connections import Connections, is_loopback

# As long as the service waits for an answer.
PATIENCE_SECONDS: Final = 10.0
# What a client would say besides; a webhook has none of it.
_NOT_OF_A_WEBHOOK: Final = ("Accept", "Accept-Encoding", "Connection")


@dataclass(frozen=True)
class Outcome:
    """The status of an answer, or a word for what came instead; a webhook's delivery fails for the same words."""

    status: int | None
    problem: Literal["", "timeout", "closed", "connect", "tls"]
    seconds: float

    @property
    def is_taken(self) -> bool:
        """True if the receiver took the event."""
        return self.status is not None and 200 <= self.status < 300


class Receiver:
    """One address, asked over a connection of its own each time."""

    def __init__(self, url: str, *, skip_verify: bool = False) -> None:
        self.url = url
        self._http = httpx.AsyncClient(
            # A proxy of the environment must not see what is meant for this machine.
            trust_env=not is_loopback(url),
            verify=_trust(url, skip_verify=skip_verify),
            follow_redirects=False,
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
            limits=httpx.Limits(max_connections=1, max_keepalive_connections=0),
            timeout=None,  # noqa: S113 - all of it together has one bound
        )
        self._connections = Connections()
        self._connections.serve(self._http)

    async def post(self, headers: Mapping[str, str], body: bytes) -> Outcome:
        """Send a body and hear the head of its answer."""
        request = self._http.build_request("POST", self.url, headers=dict(headers), content=body)
        for name in _NOT_OF_A_WEBHOOK:
            del request.headers[name]
        begun = time.monotonic()
        status: int | None = None
        problem: Literal["", "timeout", "closed", "connect", "tls"] = ""
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                answer = await self._http.send(request, stream=True)
                status = answer.status_code
                await answer.aclose()
        except TimeoutError:
            problem = "timeout" if status is None else ""
        except httpx.ConnectError as failure:
            problem = "tls" if "CERTIFICATE" in str(failure) or "SSL" in str(failure) else "connect"
        except httpx.HTTPError:
            problem = "closed" if status is None else ""
        return Outcome(status, problem, time.monotonic() - begun)

    async def close(self) -> None:
        """Let go of what is open."""
        await self._connections.settle()
        await self._http.aclose()


def _trust(url: str, *, skip_verify: bool) -> ssl.SSLContext:
    if not url.startswith("https:"):
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # What this machine trusts, an authority of its developer too.
    found = ssl.create_default_context()
    if skip_verify:
        found.check_hostname, found.verify_mode = False, ssl.CERT_NONE
    return found
