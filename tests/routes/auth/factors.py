"""Short words about second factors: codes of other moments, wrong ones, requests at once, a person's log."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import asyncpg
import httpx
import pyotp

from tests.fixtures.people import Person


def code_at(seed: str, steps: int = 0) -> str:
    """The code of an authenticator, so many half minutes from now."""
    return str(pyotp.TOTP(seed).at(int(time.time()) + 30 * steps))


# As apps, mails and messages show codes: a blank, a tab, a line end, non-breaking, narrow, and one without a width.
BLANKS = (" ", "\t", "\n", "\u00a0", "\u202f", "\u2009", "\u3000", "\u200b", "\ufeff")


def put_blanks(code: str, blank: str) -> str:
    """A code with a blank around it and in its middle."""
    return f"{blank}{code[:3]}{blank}{code[3:]}{blank}"


def wrong_code(seed: str) -> str:
    """Six digits that the authenticator shows at no time near."""
    near = {code_at(seed, steps) for steps in range(-3, 4)}
    return next(digits for digits in map("{:06d}".format, range(10)) if digits not in near)


def refusal(answer: httpx.Response) -> tuple[int, str]:
    """Status and code of an answer that is none."""
    return answer.status_code, answer.json()["data"]["code"]


def at_once(times: int, ask: Callable[[int], httpx.Response]) -> list[httpx.Response]:
    """The answers to so many requests that are sent together."""
    with ThreadPoolExecutor(times) as threads:
        return list(threads.map(ask, range(times)))


async def actions(owner: asyncpg.Connection, person: Person) -> list[str]:
    """The acts in a person's audit log, in order, with their factor."""
    rows: list[Any] = await owner.fetch(
        "SELECT action, resource_id FROM audit WHERE tenant_id = $1 AND actor_type = 'user' AND actor_id = $2 "
        "AND resource_type IN ('factor', 'passkey') ORDER BY seq",
        person.tenant,
        person.id,
    )
    return [f"{row['action']} {row['resource_id']}" for row in rows]
