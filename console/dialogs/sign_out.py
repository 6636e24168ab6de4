"""Signing out: the session ends at the service, and nothing of it stays on this machine."""

from textual.app import ComposeResult

from console.dialogs.ask import Ask
from console.widgets.plain_text import PlainText
from console.wire.failures import Failure


class SignOut(Ask[str]):
    """Answers a sentence about what became of it."""

    TITLE_TEXT = "Sign out?"
    CONFIRM = "Sign out"
    VARIANT = "warning"

    def essentials(self) -> ComposeResult:
        who = self.app.person.shown if self.app.person else "nobody"
        yield PlainText(f"You are signed in to {self.app.settings.url} as {who}.")
        yield PlainText("Every console of this profile is signed out.")

    async def perform(self) -> str:
        credential = self.app.client.credential
        try:
            await self.app.client.send("POST", "/auth/logout", object, key=self.key)
            sentence = "You have signed out."
        except Failure as failure:
            # Signing out must always work: the local session is forgotten in any case.
            sentence = (
                f"You have signed out here, but the service could not be informed: {failure.sentence} The session "
                f"there expires by itself; you can also end it from another device."
            )
        if credential is not None:
            await credential.forget()
        return sentence
