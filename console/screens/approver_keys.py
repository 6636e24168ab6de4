"""A person's own approver keys: what there is, making one, revoking one."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen

from console.application import Application
from console.dialogs.approver_key import COMPARE, EnrolKey, RevokeKey, key_lines
from console.dialogs.shown import Shown
from console.widgets.listing import Cell, Column, Listing
from console.widgets.plain_text import PlainText
from console.wire.failures import Failure
from console.wire.shapes_votes import ApproverKey
from console.work import work
from words.texts.moments import ago, moment


class ApproverKeys(ModalScreen[None]):
    """A list over the place one is at."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("n", "make", "New key"),
        Binding("x", "revoke", "Revoke"),
        Binding("escape,q", "dismiss", "Close"),
    ]
    AUTO_FOCUS = "Listing"
    app: Application

    def compose(self) -> ComposeResult:
        with Vertical():
            yield PlainText("Your approver keys", classes="over-title")
            yield Listing[ApproverKey](
                [
                    Column("Name", lambda one: one.name, 14, share=2),
                    Column("State", _state, 8),
                    Column("Fingerprint", lambda one: f"{one.fingerprint[:16]}…", 18),
                    Column("Made for", lambda one: one.rp_id, 26, wide=True),
                    Column("Made", lambda one: ago(moment(one.created_at), self.app.now()), 5, right=True),
                ],
                lambda one: one.id,
                empty="Loading…",
            )
            yield PlainText("", id="keys-trouble")
            keys = "Enter shows the fingerprint  " + ("" if self.app.client.read_only else "n new  x revoke  ")
            yield PlainText(f"{keys}Esc closes", classes="over-keys")

    def on_screen_resume(self) -> None:
        work(self, "load", self._load)

    def on_listing_chosen(self, event: Listing.Chosen) -> None:
        event.stop()
        self._show(event.row)

    def action_make(self) -> None:
        """Make a key and show what is compared."""
        if not self.app.client.read_only:
            self.app.push_screen(EnrolKey(), lambda made: self._show(made) if made else None)

    def action_revoke(self) -> None:
        """Revoke the key under the cursor."""
        key = self._list.row
        if key is not None and key.status == "active" and not self.app.client.read_only:
            self.app.push_screen(RevokeKey(key))

    def _show(self, key: ApproverKey) -> None:
        lines = "\n".join(line.text for line in key_lines(key))
        self.app.push_screen(Shown("Approver key", f"{lines}\n\n{COMPARE}"))

    async def _load(self) -> None:
        trouble, person = "", self.app.person
        try:
            if person is None or person.user is None:
                raise Failure("Only people have approver keys; you use the tenant key. Esc, then i signs in.")
            found = await self.app.client.get("/approver-keys", list[ApproverKey])
            self._list.empty = "You have none. n makes one; then have a rule name its fingerprint."
            self._list.show([one for one in found if one.user_id == person.user])
        except Failure as failure:
            trouble = failure.sentence
            self._list.empty = ""
            self.app.signed_out(failure)
        self._list.refresh()
        self.query_one("#keys-trouble", PlainText).update(trouble)

    @property
    def _list(self) -> Listing[ApproverKey]:
        return self.query_one(Listing)


def _state(key: ApproverKey) -> Cell:
    return "active" if key.status == "active" else (key.status, "quiet")
