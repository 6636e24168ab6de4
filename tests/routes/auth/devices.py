"""Devices that ask to be signed in, and the clock of their codes."""

from typing import Any

import asyncpg
import httpx
import msgspec

from api.areas.people.devices import GRANT_TYPE
from tests.fixtures.callers import Client
from tests.fixtures.server import Service


class Device(msgspec.Struct):
    """A device with its code; `client` speaks for it, without any credential."""

    client: Client
    asked: dict[str, Any]
    code: dict[str, Any]

    def poll(self, **changed: Any) -> httpx.Response:
        """Ask whether it was let in, as it asked for its code unless the test says otherwise."""
        same = {name: value for name, value in self.asked.items() if name not in ("tenantId", "tenant_id")}
        body = {"grant_type": GRANT_TYPE, "device_code": self.code["device_code"], **same, **changed}
        return self.client.post("/auth/device/token", json={k: v for k, v in body.items() if v is not None})

    def error(self, **changed: Any) -> str:
        """The error of a poll that gives no session."""
        answer = self.poll(**changed)
        assert answer.status_code == 400, answer.text
        return str(answer.json()["error"])


def new_device(client: Client, tenant: str, **asked: Any) -> Device:
    """A device that was given a code."""
    asked = {"tenantId": tenant, **asked}
    return Device(client, asked, client.ok("POST", "/auth/device/code", asked))


def decide(person: Client, device: Device, action: str = "approve") -> httpx.Response:
    """Decide as a person does who is signed in."""
    return person.post("/auth/device/verify", json={"user_code": device.code["user_code"], "action": action})


async def pass_time(owner: asyncpg.Connection, device: Device, seconds: float) -> None:
    """Move everything that happened to a code so far back."""
    done = await owner.execute(
        "UPDATE device_codes SET expires_at = expires_at - make_interval(secs => $2), "
        "polled_at = polled_at - make_interval(secs => $2) WHERE user_code = $1",
        device.code["user_code"],
        seconds,
    )
    assert done == "UPDATE 1"


def page_of(service: Service) -> str:
    """The address that devices show."""
    return f"http://localhost:{service.port}/device"
