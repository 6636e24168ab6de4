"""Configurations for tenants of known ids that have saved none.

A preset holds what people see and nothing that decides: how approvals, second factors and app clients are judged is
for the signer to know, so it is saved or it is the default.
"""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from custody.identity.theme import (
    CustomizableField,
    PolicyTemplate,
    SecretRoutePreset,
    TemplateRule,
    Theme,
)
from custody.kit.environment import BadSetting
from custody.kit.errors import Invalid
from custody.kit.shapes import TenantId
from custody.tenants.rules import check
from custody.tenants.types import ShownConfig

VARIABLE: Final = "SERVICE_TENANT_PRESETS_FILE"
_DAILY_LIMIT = PolicyTemplate(
    id="daily-limit",
    name="A daily limit",
    description="A person must approve orders above it.",
    icon="shield",
    policies=(TemplateRule(id="day", type="spending-limit", config={"maxPerDay": "1000000000000000000"}),),
    customizable_fields=(
        CustomizableField(
            path="policies[0].config.maxPerDay",
            label="Most in a day, in wei",
            type="amount",
            default="1000000000000000000",
            min="0",
        ),
    ),
)
_OPENAI = SecretRoutePreset(
    id="openai",
    name="OpenAI",
    host_pattern="api.openai.com",
    path_pattern="/v1/*",
    inject_as="header",
    inject_key="authorization",
    inject_format="Bearer {value}",
    provisioning="user",
)
BUILT_IN: Final = {
    "demo": ShownConfig(
        display_name="Demo",
        policy_exposure={"spending-limit": "visible", "auto-approve-threshold": "visible"},
        policy_templates=(_DAILY_LIMIT,),
        secret_route_presets=(_OPENAI,),
        theme=Theme(primary_color="#1f6feb", color_scheme="system", border_radius=8),
    )
}


def load(environment: Mapping[str, str]) -> dict[str, str]:
    """Every preset by tenant id, as a stored document; a bad file raises BadSetting with what is wrong in it.

    The file is TOML: a table for each tenant id, its keys spelled as in `GET /tenants/:id/config`. A tenant of the
    file takes the place of the built-in one.
    """
    presets = dict(BUILT_IN)
    if path := environment.get(VARIABLE, "").strip():
        presets |= _from_file(Path(path).expanduser())
    return {tenant: msgspec.json.encode(preset).decode() for tenant, preset in presets.items()}


def _from_file(path: Path) -> dict[str, ShownConfig]:
    try:
        tables = msgspec.convert(tomllib.loads(path.read_text()), dict[TenantId, object])
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, msgspec.ValidationError) as problem:
        raise BadSetting(VARIABLE, str(problem)) from None
    return {tenant: _preset(tenant, table) for tenant, table in tables.items()}


def _preset(tenant: str, table: object) -> ShownConfig:
    try:
        return check(msgspec.convert(table, ShownConfig))
    except (msgspec.ValidationError, Invalid) as problem:
        raise BadSetting(VARIABLE, f"{tenant}: {problem} (a preset holds only what people see)") from None
