"""A real browser without a window, with a passkey authenticator in it that answers for its owner.

Playwright's plain API runs a loop of its own on the test's thread as long as a page is open, so such a test is a
plain function, and its asynchronous fixtures are made before the page is opened.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
from playwright.sync_api import CDPSession, ConsoleMessage, Page, expect, sync_playwright

from tests.outside.programs import CHROMIUM, install

# Nothing but this machine has a name.
_ARGUMENTS = ("--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE *.localhost, EXCLUDE 127.0.0.1",)
# Long, because nobody waits for it where all is well: beside busy loops a page takes its time to be drawn. What a test
# expects of a page is looked for as long as what it clicks; else that would be five seconds.
_LONGEST_MILLISECONDS = 60_000
expect.set_options(timeout=_LONGEST_MILLISECONDS)
_BUILT_IN = {
    "protocol": "ctap2",
    "transport": "internal",
    "hasResidentKey": True,
    "hasUserVerification": True,
    "isUserVerified": True,
    "automaticPresenceSimulation": True,
}


class VirtualAuthenticator:
    """The one that the browser believes is built in."""

    def __init__(self, wire: CDPSession) -> None:
        self._wire = wire
        wire.send("WebAuthn.enable")
        self._id = wire.send("WebAuthn.addVirtualAuthenticator", {"options": _BUILT_IN})["authenticatorId"]

    def passkeys(self) -> list[dict[str, Any]]:
        """List its passkeys: credentialId, rpId, userHandle, signCount and more, as the browser's protocol has them."""
        return list(self._wire.send("WebAuthn.getCredentials", {"authenticatorId": self._id})["credentials"])

    def verify_user(self, verified: bool) -> None:
        """From now on its owner is recognised by finger or code, or is not."""
        self._wire.send("WebAuthn.setUserVerified", {"authenticatorId": self._id, "isUserVerified": verified})

    def forget(self) -> None:
        """Lose every passkey."""
        self._wire.send("WebAuthn.clearCredentials", {"authenticatorId": self._id})


class Visit(msgspec.Struct, frozen=True):
    """A page of a fresh browser, its authenticator, and everything that the page complained of."""

    page: Page
    authenticator: VirtualAuthenticator
    faults: list[str]


@contextmanager
def browser_page(base_url: str, picture: Path | None = None) -> Iterator[Visit]:
    """Start a browser that knows nothing, with paths relative to the address; leave a picture of the page's end."""
    program = install(CHROMIUM)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=program, args=_ARGUMENTS, chromium_sandbox=os.geteuid() != 0
        )
        page = browser.new_page(base_url=base_url)
        page.set_default_timeout(_LONGEST_MILLISECONDS)
        try:
            yield Visit(page, VirtualAuthenticator(page.context.new_cdp_session(page)), _complaints(page))
        finally:
            # Of a failure too: that is the picture people want.
            if picture:
                page.screenshot(path=picture, full_page=True)
            browser.close()


def _complaints(page: Page) -> list[str]:
    faults: list[str] = []

    def note(message: ConsoleMessage) -> None:
        if message.type == "error":
            faults.append(message.text)

    page.on("console", note)
    page.on("pageerror", lambda error: faults.append(str(error)))
    return faults
