"""Make credential routes from the tenant's presets."""

from api.areas.secrets.routes import create
from api.areas.secrets.types import NewCredentialRouteBody
from api.areas.templates.types import RoutePresetBody
from api.areas.tenants import store as tenants
from custody.kit.answers import Answered
from custody.kit.callers import TenantCaller
from custody.kit.errors import Invalid, NotFound
from custody.ports import Ports
from custody.protocol.signer.secrets import CredentialRoute


class PresetAbsent(NotFound):
    """No such preset; `secretRoutePresets` of `GET /tenants/:id/config` lists those of the tenant."""


class PresetNamesSecret(Invalid):
    """This preset names the secret of its routes: leave `secretId` out."""


class PresetNeedsSecret(Invalid):
    """This preset names no secret: send `secretId`, of a secret that `POST /secrets` stored."""


async def apply(ports: Ports, caller: TenantCaller, body: RoutePresetBody) -> Answered[CredentialRoute]:
    """Make a route as a preset says; checked as any route, for a preset is a text that nobody has checked yet."""
    presets = (await tenants.get_config(ports.pool, caller.tenant, ports.presets)).secret_route_presets
    preset = next((one for one in presets if one.id == body.preset_id), None)
    if preset is None:
        raise PresetAbsent
    if preset.provisioning == "platform" and body.secret_id not in (None, preset.platform_secret_id):
        raise PresetNamesSecret(fields=["secretId"])
    secret = preset.platform_secret_id if preset.provisioning == "platform" else body.secret_id
    if secret is None:
        raise PresetNeedsSecret(fields=["secretId"])
    made = NewCredentialRouteBody(
        secret_id=secret,
        host_pattern=preset.host_pattern,
        path_pattern=preset.path_pattern,
        inject_as=preset.inject_as,
        inject_key=preset.inject_key,
        inject_format=preset.inject_format,
        agents=body.agents,
    )
    return await create(ports, caller, made)
