"""Tell people what waits: one message a minute and channel, of what is undecided when it leaves.

Taken up, retried and written down as deliveries of webhooks are (`scheduler/webhooks/deliver.py`): what a receiver
says is never kept. The target is opened for one message and forgotten with it.
"""

from collections.abc import Sequence
from typing import Any, Final

from prometheus_client import Counter, Gauge, Histogram

from custody.kit import clock
from custody.kit.callers import Origin
from custody.kit.ids import new_uuid
from custody.kit.outside import Outside
from custody.notices import store
from custody.notifications.mail import Letter, Mail
from custody.ports import Ports
from custody.protocol.identity.channels import OpenChannel, OpenedChannel
from custody.version import VERSION
from scheduler.notices import bodies, web_push
from scheduler.webhooks.deliver import CLAIM_SECONDS, Deliveries, Figures, Lane, Outcome, wait_for
from scheduler.webhooks.receiver import Answer

# Channels that one statement takes up, mails of a tenant in 24 hours, and items that a message is made from.
PER_CLAIM: Final = 100
MAILS_PER_DAY: Final = 200
SHOWN: Final = 20
# The first pause; each further one is twice as long.
_FIRST_PAUSE_SECONDS: Final = 60.0
_MAIL: Final = "email"
_PUSH: Final = "webpush"

_ATTEMPTS = Counter("custody_notice_attempts_total", "Attempts to send a message by how they ended", ["outcome"])
_SECONDS = Histogram("custody_notice_attempt_seconds", "Time from a claim to the receiver's answer")
_WAITED = Histogram(
    "custody_notice_due_seconds",
    "How long a message was due before it was taken up",
    buckets=(0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 3600),
)
_UNDER_WAY = Gauge("custody_notice_attempts_under_way", "Attempts that wait for an answer")


class Notices(Deliveries):
    """The messages of this process; mail goes to one server, everything else to who is named."""

    # Who left the team or switched the channel off is told nothing more, and nobody waits for it.
    away: Outcome = "failed"
    tampered = "sealed_value_tampered"
    figures = Figures(_ATTEMPTS, _SECONDS, _WAITED, _UNDER_WAY)

    def __init__(self, outside: Outside, mail: Mail | None, public_url: str) -> None:
        super().__init__(outside)
        self._mail = mail
        self._public_url = public_url

    async def _take_up(self, ports: Ports, room: int) -> Sequence[Any]:
        return await store.claim(ports.pool, min(room, PER_CLAIM), CLAIM_SECONDS, MAILS_PER_DAY, SHOWN)

    async def _write_down(self, ports: Ports, columns: Sequence[Sequence[Any]]) -> set[Any]:
        return await store.settle(ports.pool, columns)

    async def _prepare(self, ports: Ports, row: Any) -> tuple[dict[str, str], str, bytes]:
        opened: OpenedChannel = await ports.workers.tell(
            OpenChannel(row["tenant_id"], str(row["id"])), Origin(new_uuid())
        )
        message = bodies.compose(row, self._public_url, ports.chains.units)
        if row["kind"] == _PUSH:
            return _seal_push(message, opened, self._public_url, str(row["id"]))
        headers, body = bodies.send_form(row["kind"], message, opened.token, str(row["id"]))
        if row["kind"] == _MAIL:
            return {"Subject": message.title}, opened.target, body
        return {"User-Agent": f"Custody-Notices/{VERSION}", **headers}, opened.target, body

    async def _send(self, lane: Lane, row: Any, url: str, headers: dict[str, str], body: bytes) -> Answer:
        if row["kind"] != _MAIL:
            answer = await super()._send(lane, row, url, headers, body)
            # A push service forgets a browser by either word, and neither comes back.
            return Answer(status=410) if row["kind"] == _PUSH and answer.status == 404 else answer
        if self._mail is None:
            return Answer(problem="connect")
        problem = await self._mail.deliver(url, Letter(headers["Subject"], body.decode()), tag=str(row["id"]))
        return Answer(status=250) if problem is None else Answer(problem=problem)

    def _wait(self, row: Any, retry_after: float | None) -> float:
        return wait_for(_FIRST_PAUSE_SECONDS * 2 ** (row["attempt"] - 1), retry_after)


def _seal_push(
    message: bodies.Message, opened: OpenedChannel, public_url: str, tag: str
) -> tuple[dict[str, str], str, bytes]:
    keys = web_push.read_keys(opened.token or "")
    now = int(clock.now().timestamp())
    headers = web_push.headers_for(opened.target, keys, public_url, now, is_grave=message.is_grave)
    body = web_push.seal(bodies.push_payload(message), keys)
    return {"User-Agent": f"Custody-Notices/{VERSION}", **headers, "X-Notice-Id": tag}, opened.target, body
