"""Voting on one item with one's own key, on a page of this machine. Decision 0059."""

import secrets
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from console.approver.matter import (
    NONCE_BYTES,
    Matter,
    base64url,
    digest_of,
    group_digits,
    order_fields,
    same_digest,
)
from console.approver.page import RP_ID, Page, Task
from console.dialogs.deciding import Deciding
from console.dialogs.on_page import OnPage
from console.queue.decisions import Over, send_vote
from console.queue.queue import Outcome
from console.wire.api_client import new_key
from console.wire.failures import AnswerLost, Failure, Malformed
from console.wire.shapes_votes import ApproverKey, ExactOrder
from words.orders.psbt_in_words import agrees
from words.orders.votes import count, votes_in_words, votes_section, why_no_vote
from words.shapes import Approval, Votes
from words.texts.fields import indent
from words.texts.lines import Heading, Line
from words.texts.plain import harmless

# A vote counts as long as the item waits, but never longer than this.
_LONGEST: Final = timedelta(hours=24) - timedelta(minutes=1)
_DIFFERS: Final = (
    "STOP: the order that the service sent is not the one that is shown, or has another digest. Nothing was asked of "
    "your key. Do not vote; tell your administrator over another channel, for the service may be compromised."
)
_NO_KEY: Final = (
    'You have no approver key of this console. Press ctrl+p, choose "Set up an approver key", and have the rule name '
    "its fingerprint."
)


class Vote(Deciding, OnPage[Outcome | Votes]):
    """Answers with what came of it: the outcome, or the votes so far where the item waits for more."""

    TITLE_TEXT = "Vote for this?"
    CONFIRM = "Vote"
    VARIANT = "success"
    WAY = "approve"
    LEAVING = "If your key had answered already, your vote may still count; the queue will show it."
    # What the key answered, kept until the service said what became of it: sent again, it is the same vote.
    _evidence: dict[str, str] | None = None

    def lines(self) -> list[Line]:
        me = self.app.person.user if self.app.person else None
        return [*super().lines(), Line(""), *votes_in_words(self.item.approval.votes, me)]

    async def decide(self) -> Outcome | Votes:
        try:
            if self._evidence is None:
                self.key = new_key()
                self._evidence = await self._asked_of_key()
            return await self.app.act(self._sent_as_read)
        except (AnswerLost, Malformed, Over):
            raise
        except Failure:
            self._evidence = None
            raise

    def on_page(self, result: Outcome | Votes) -> str:
        if isinstance(result, Outcome):
            return result.sentence
        me = self.app.person.user if self.app.person else None
        return f"Your vote was taken: {count(result, me)}. The order is not signed yet."

    async def _sent_as_read(self) -> Outcome | Votes:
        self.insist_on_reading("Not voted.")
        return await send_vote(self.app.client, self.item, self._evidence or {}, self.key)

    async def _asked_of_key(self) -> dict[str, str]:
        """Check the order against what is shown, and ask the person's key on the page."""
        person, approval = self.app.person, self.item.approval
        votes = approval.votes
        if person is None or person.user is None or person.tenant is None:
            raise Failure(why_no_vote(votes or Votes(0, 0), None))
        client = self.app.client
        listed = await client.get("/approver-keys", list[ApproverKey])
        keys = {
            one.credential_id: one.id
            for one in listed
            if one.user_id == person.user and one.status == "active" and one.rp_id == RP_ID
        }
        if not keys:
            raise Failure(_NO_KEY)
        exact = await client.get_exact(f"/approvals/{approval.id}", ExactOrder)
        digest = digest_of(exact.kind, exact.order)
        if not same_digest(digest, approval.digest) or not _is_shown(exact, approval):
            self._over = _DIFFERS
            raise Over(_DIFFERS)
        matter = Matter(person.tenant, approval.id, approval.tx_id, approval.digest, person.user)
        # The service's clock: by it a vote ends.
        until = min(filter(None, (self.item.expires, self.app.now() + _LONGEST)))
        challenge = matter.challenge(secrets.token_bytes(NONCE_BYTES), int(until.timestamp()))  # noqa: TID251
        task = Task(does="vote", challenge=base64url(challenge), credentials=list(keys))
        lines = self._page_lines(person.shown, order_fields(exact.order))
        answer = await self.wait_for_answer(Page(task, "Vote for this order?", lines, "Vote with your key"))
        if answer.credential_id not in keys:
            raise Failure("A key answered that is not yours here. Nothing was sent.")
        return {
            "keyId": keys[answer.credential_id],
            "authenticatorData": answer.authenticator_data,
            "clientDataJSON": answer.client_data,
            "signature": answer.signature,
        }

    def _page_lines(self, who: str, fields: Mapping[str, Any]) -> list[Line]:
        approval = self.item.approval
        me = self.app.person.user if self.app.person else None
        return [
            Line(f"You vote as {who}, at {self.app.settings.url}."),
            Heading("What it does"),
            *self.lines()[: -len(votes_in_words(approval.votes, me)) - 1],
            *votes_section(approval.votes, me)[1:],
            Heading("The order itself"),
            Line("From this the console computed the digest that your key signs:", "quiet"),
            *(Line(line) for line in indent(harmless(dict(fields)))),
            Heading("What your key signs"),
            Line(f"item     {approval.id}"),
            Line(f"digest   {group_digits(approval.digest)}"),
        ]


def _is_shown(exact: ExactOrder, approval: Approval) -> bool:
    """Check the order against what its item claims: destination, amount and chain."""
    if (exact.id, exact.tx_id, exact.kind) != (approval.id, approval.tx_id, approval.kind):
        return False
    said = order_fields(exact.order)
    if approval.kind in ("typed_data", "evm_message", "solana_message", "x402", "solana_x402"):
        return bool(said)
    if approval.kind == "bitcoin":
        return agrees(said, approval.effects)
    same_place = str(said.get("to")).lower() == str(approval.to_address).lower()
    chain = said.get("chainId", 101 if approval.kind == "solana" else None)
    return same_place and said.get("value") == approval.value and chain == approval.chain_id
