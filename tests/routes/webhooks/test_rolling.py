"""A webhook's secret that is rolled: receivers that know either verify what is sent, until the former one ends."""

import hashlib
import hmac
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import asyncpg
import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from tests.fixtures.callers import Tenant
from tests.fixtures.eventually import eventually
from tests.fixtures.people import Person, member
from tests.fixtures.server import Service
from tests.routes.webhooks.receivers import Received, Receiver, running_receiver
from tests.routes.webhooks.test_guide import PAGE, Judge, example


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """The receiver of deliveries."""
    with running_receiver() as running:
        yield running


@pytest.fixture
def webhook(as_owner: Person, receiver: Receiver) -> dict[str, Any]:
    """An endpoint there, with its first secret."""
    made: dict[str, Any] = as_owner.ok("POST", "/webhooks", {"url": receiver.url()})
    return made


def roll(person: Person, webhook: dict[str, Any], **body: int) -> dict[str, Any]:
    answer: dict[str, Any] = person.ok("POST", f"/webhooks/{webhook['id']}/roll-secret", body)
    return answer


def next_delivery(person: Person, webhook: dict[str, Any], receiver: Receiver) -> Received:
    """The next delivery."""
    before = len(receiver.received)
    person.ok("POST", f"/webhooks/{webhook['id']}/test")
    found: list[Received] = eventually(lambda: list(receiver.received)[before:])
    return found[0]


def verify_with_each(secrets: list[str], received: Received) -> list[bool]:
    """Verify with a foreign library, with each secret; ours, and the example on the page, must say the same."""
    return [_verify(secret, received) for secret in secrets]


def _verify(secret: str, received: Received) -> bool:
    own = f"sha256={hmac.new(secret.encode(), received.body, hashlib.sha256).hexdigest()}"
    is_genuine: Judge = example(PAGE)
    try:
        Webhook(secret).verify(received.body, received.headers)
    except WebhookVerificationError:
        known = False
    else:
        known = True
    assert known is (own in received.headers["x-service-signature"].split(" "))
    assert known is is_genuine(secret, received.headers, received.body)
    return known


async def test_either_secret_verifies_until_the_former_one_ends(
    as_owner: Person, webhook: dict[str, Any], receiver: Receiver, owner: asyncpg.Connection
) -> None:
    answer = roll(as_owner, webhook)
    secrets = [webhook["secret"], answer["secret"]]
    during = next_delivery(as_owner, webhook, receiver)
    await owner.execute(
        "UPDATE identity_sealed SET ends_at = now() WHERE owner = $1 AND ends_at IS NOT NULL", webhook["id"]
    )
    after = next_delivery(as_owner, webhook, receiver)

    assert answer == {**answer, "id": webhook["id"]}
    assert len(answer["formerSecretsEnd"]) == 1
    assert verify_with_each(secrets, during) == [True, True]
    assert verify_with_each(secrets, after) == [False, True]
    # The newest comes first, for receivers that look no further.
    assert (
        during.headers["x-service-signature"].split(" ")[0].removeprefix("sha256=")
        == hmac.new(secrets[1].encode(), during.body, hashlib.sha256).hexdigest()
    )


async def test_the_overlap_is_a_day_or_as_long_as_asked(
    as_owner: Person, webhook: dict[str, Any], owner: asyncpg.Connection
) -> None:
    ends = [roll(as_owner, webhook)["formerSecretsEnd"], roll(as_owner, webhook, overlapSeconds=60)]
    left = await owner.fetch(
        "SELECT round(extract(epoch FROM ends_at - now()) / 60) * 60 AS seconds FROM identity_sealed "
        "WHERE owner = $1 AND ends_at IS NOT NULL ORDER BY ends_at",
        webhook["id"],
    )

    assert [int(row["seconds"]) for row in left] == [60, 86_400]
    assert ends[1]["formerSecretsEnd"][1:] == ends[0]


def test_a_leaked_secret_ends_at_once_and_all_before_it(
    as_owner: Person, webhook: dict[str, Any], receiver: Receiver
) -> None:
    second = roll(as_owner, webhook)["secret"]
    answer = roll(as_owner, webhook, overlapSeconds=0)

    assert answer["formerSecretsEnd"] == []
    received = next_delivery(as_owner, webhook, receiver)
    assert verify_with_each([webhook["secret"], second, answer["secret"]], received) == [False, False, True]


def test_a_roll_whose_answer_was_lost_locks_out_nobody(
    as_owner: Person, webhook: dict[str, Any], receiver: Receiver
) -> None:
    secrets = [webhook["secret"], *(roll(as_owner, webhook)["secret"] for _ in range(3))]

    full = as_owner.post(f"/webhooks/{webhook['id']}/roll-secret", json={})
    received = next_delivery(as_owner, webhook, receiver)

    assert (full.status_code, full.json()["data"]["code"]) == (409, "too_many_webhook_secrets")
    assert verify_with_each(secrets, received) == [True] * 4
    assert roll(as_owner, webhook, overlapSeconds=0)["formerSecretsEnd"] == []


@pytest.mark.parametrize("seconds", [-1, 604_801, "60", 1.5, None])
def test_a_bad_overlap_is_400(as_owner: Person, webhook: dict[str, Any], seconds: object) -> None:
    answer = as_owner.post(f"/webhooks/{webhook['id']}/roll-secret", json={"overlapSeconds": seconds})

    assert (answer.status_code, answer.json()["data"]["fields"]) == (400, ["overlapSeconds"])


def test_another_tenants_and_a_deleted_webhook_are_404(
    service: Service, as_owner: Person, webhook: dict[str, Any], other_tenant: Tenant
) -> None:
    path = f"/webhooks/{webhook['id']}/roll-secret"
    with closing(member(service, other_tenant, "owner", mfa=True)) as stranger:
        foreign = stranger.post(path, json={})
    as_owner.ok("DELETE", f"/webhooks/{webhook['id']}")

    for answer in (foreign, as_owner.post(path, json={})):
        assert (answer.status_code, answer.json()["data"]["code"]) == (404, "webhook_absent")


@pytest.mark.parametrize("act", ["the newest is gone", "places were exchanged"])
async def test_secrets_that_somebody_moved_sign_nothing(
    as_owner: Person, webhook: dict[str, Any], receiver: Receiver, owner: asyncpg.Connection, act: str
) -> None:
    roll(as_owner, webhook)
    if act == "the newest is gone":
        await owner.execute("DELETE FROM identity_sealed WHERE owner = $1 AND ends_at IS NULL", webhook["id"])
    else:
        await owner.execute(
            "UPDATE identity_sealed s SET blob = o.blob FROM identity_sealed o "
            "WHERE s.owner = $1 AND o.owner = $1 AND s.purpose <> o.purpose",
            webhook["id"],
        )
    as_owner.ok("POST", f"/webhooks/{webhook['id']}/test")

    failed = eventually(
        lambda: as_owner.ok("GET", f"/webhooks/{webhook['id']}/deliveries"), lambda found: found[0]["hasError"]
    )
    assert (failed[0]["status"], receiver.received) == ("failed", [])


async def test_the_log_tells_of_it_without_a_secret(
    as_owner: Person, webhook: dict[str, Any], owner: asyncpg.Connection
) -> None:
    secret = roll(as_owner, webhook, overlapSeconds=60)["secret"]

    row = await owner.fetchrow(
        "SELECT * FROM audit WHERE resource_id = $1 AND action = 'webhook.secret_rolled'", webhook["id"]
    )
    assert (row["actor_id"], row["metadata"]) == (as_owner.id, '{"overlapSeconds":60}')
    assert secret not in str(row)
