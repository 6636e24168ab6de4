"""A person's own approver keys: making one on a page of this machine, and revoking one. Decision 0059."""

import base64
import binascii
import secrets
from typing import Final
from uuid import UUID

from textual.app import ComposeResult
from textual.widgets import Input

from console.approver.matter import base64url, fingerprint, group_digits
from console.approver.page import RP_ID, Page, Task
from console.dialogs.ask import Ask
from console.dialogs.on_page import OnPage
from console.widgets.line_view import LineView
from console.wire.failures import Failure
from console.wire.shapes_votes import ApproverKey
from words.texts.lines import Line

COMPARE: Final = (
    "Compare this with the administrator who sets the rule, over another channel than this service: read it to each "
    "other, or meet. A rule names a key by it."
)
_CHALLENGE_BYTES: Final = 32
_NAME_CHARACTERS: Final = 64
_OTHER: Final = (
    "STOP: the service says another fingerprint for this key than the one that this console computed. Do not have it "
    "named by a rule; tell your administrator over another channel."
)


class EnrolKey(OnPage[ApproverKey]):
    """Answers with the key once the service has it."""

    TITLE_TEXT = "Set up an approver key"
    CONFIRM = "Make a key"
    # What one types is its name, in place of the one that is proposed.
    AUTO_FOCUS = "#key-name"
    DEFAULT_CSS = "EnrolKey Input { margin-top: 1; background: $panel; }"

    def essentials(self) -> ComposeResult:
        yield LineView(
            [
                Line("With this key you vote on orders whose rule asks for votes."),
                Line(f"It is made on a page of this machine ({RP_ID}), which no website can imitate."),
                Line("Your authenticator asks for your finger, face or PIN, now and at each vote."),
            ]
        )

    def fields(self) -> ComposeResult:
        yield Input("Approver key", placeholder="your name for it", max_length=_NAME_CHARACTERS, id="key-name")

    def on_page(self, result: ApproverKey) -> str:
        return "Your key is made. The console shows its fingerprint: compare it before a rule names it."

    async def perform(self) -> ApproverKey:
        name = self.query_one("#key-name", Input).value.strip()
        person = self.app.person
        if not name:
            raise Failure("Give the key a name.")
        if person is None or person.user is None:
            raise Failure("Only a person who has signed in has approver keys. Press i to sign in.")
        own = await self.app.client.get("/approver-keys", list[ApproverKey])
        mine = [one for one in own if one.user_id == person.user]
        task = Task(
            does="enrol",
            challenge=base64url(secrets.token_bytes(_CHALLENGE_BYTES)),  # noqa: TID251
            credentials=[one.credential_id for one in mine if one.status == "active" and one.rp_id == RP_ID],
            user=base64url(UUID(person.user).bytes),
            name=person.name or name,
        )
        lines = [
            Line(f"For {person.shown}, at {self.app.settings.url}."),
            Line(f"Its name: {name}"),
            Line("The console shows the key's fingerprint afterwards. Compare it before a rule names it.", "warn"),
        ]
        answer = await self.wait_for_answer(Page(task, "Set up an approver key", lines, "Make a key"))
        ours = fingerprint(_decode(answer.public_key))
        if ours is None:
            raise Failure("The authenticator made a key of another kind than P-256. Use another authenticator.")
        body = {
            "name": name,
            "rpId": RP_ID,
            "credentialId": answer.credential_id,
            "publicKey": answer.public_key,
        }
        made = await self.send("POST", "/approver-keys", ApproverKey, body)
        if made.fingerprint != ours:
            raise Failure(_OTHER)
        return made


class RevokeKey(Ask[ApproverKey]):
    """Answers with the key once it is revoked."""

    TITLE_TEXT = "Revoke this approver key?"
    CONFIRM = "Revoke"
    VARIANT = "error"

    def __init__(self, key: ApproverKey) -> None:
        super().__init__()
        self._key = key

    def essentials(self) -> ComposeResult:
        yield LineView(
            [
                *key_lines(self._key),
                Line(""),
                Line("Votes by it count no more, also those that were given already.", "bad"),
                Line("This cannot be undone; a rule that names it stays, and needs somebody else's vote."),
            ]
        )

    async def perform(self) -> ApproverKey:
        return await self.send("DELETE", f"/approver-keys/{self._key.id}", ApproverKey)


def key_lines(key: ApproverKey) -> list[Line]:
    """A key, with its fingerprint as it is compared."""
    return [
        Line(f"name         {key.name}"),
        Line(f"made for     {key.rp_id}"),
        Line(f"state        {key.status}"),
        Line("fingerprint"),
        Line(f"  {group_digits(key.fingerprint)}"),
    ]


def _decode(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return b""
