"""The walk-through's own tenant: made once with the platform key, and its API key kept beside the state."""

from itertools import count

import httpx

from ops import places
from ops.demo.callers import Api, DemoFailed
from ops.greeting import demo_key_file
from ops.settings import Settings

_MOST = 100


async def tenant_key(client: httpx.AsyncClient, url: str, settings: Settings) -> str:
    """The API key of a tenant that belongs to the walk-through alone."""
    folder = places.folder(settings.home / "demo")
    key_file, id_file = demo_key_file(settings), folder / "tenant.id"
    if key_file.exists() and id_file.exists():
        key, tenant = key_file.read_text().strip(), id_file.read_text().strip()
        # Another database may stand behind the same folder by now.
        if (await Api(client, url, {"X-Service-Key": key}).ask("GET", f"/tenants/{tenant}")).status == 200:
            return key
    tenant, key = await _new_tenant(Api(client, url, {"X-Service-Platform-Key": platform_key(settings)}))
    places.write_private(id_file, tenant + "\n")
    places.write_private(key_file, key + "\n")
    return key


async def _new_tenant(platform: Api) -> tuple[str, str]:
    """A tenant `demo`; where one exists its key was lost, so it is left alone and the next is made."""
    for number in count(1):
        tenant = "demo" if number == 1 else f"demo-{number}"
        answer = await platform.ask("POST", "/platform/tenants", {"id": tenant, "name": "Walk-through"})
        if answer.status == 201:
            return tenant, answer.data["apiKey"]
        if answer.status != 409 or number == _MOST:
            raise DemoFailed(f"no tenant could be created: {answer.error}")
    raise AssertionError


def platform_key(settings: Settings) -> str:
    """The operator's key of this deployment."""
    try:
        return settings.platform_key_file.read_text().strip()
    except OSError as problem:
        raise DemoFailed(f"cannot read the platform key {settings.platform_key_file}: {problem.strerror}") from None
