"""A notice in place of a screen that this credential may not see, with the way to see it."""

from console.widgets.plain_text import PlainText
from console.wire.failures import Forbidden, MfaRequired


class SessionNeeded(PlainText):
    """Hidden while everything is open. `what` begins the sentence: "Webhooks are"."""

    DEFAULT_CSS = """
    SessionNeeded { display: none; height: auto; padding: 1 2; background: $surface; }
    SessionNeeded.-shown { display: block; }
    """

    def __init__(self, what: str) -> None:
        super().__init__("")
        self._what = what

    def for_key(self) -> None:
        """A tenant key is not a person; `i` signs in."""
        self._say(
            f"{self._what} for signed-in people only; you use the tenant key.\n\n"
            "Press i to sign in. The key is ignored until the console restarts."
        )

    def for_person(self, failure: Forbidden) -> None:
        """This person may not, or not before a second factor; the API says why."""
        cure = "\n\nPress Enter to verify a second factor." if isinstance(failure, MfaRequired) else ""
        self._say(f"{failure.sentence}{cure}")

    def open(self) -> None:
        """Nothing is needed any more."""
        self._say("")

    def _say(self, sentence: str) -> None:
        self.set_class(bool(sentence), "-shown")
        self.update(sentence)
