"""The rules for what a configuration may show people."""

import msgspec

from custody.identity import theme
from custody.kit.errors import Invalid
from custody.policies.kinds import KINDS
from custody.tenants.types import FLAGS, ShownConfig


class WrongTenantId(Invalid):
    """tenantId must equal the tenant's id."""


class UnknownFlag(Invalid):
    """Unknown feature flag."""


class UnknownPolicyType(Invalid):
    """Unknown policy type."""


def check[C: ShownConfig](config: C) -> C:
    """The configuration as it is stored; Invalid names the field that is wrong."""
    if unknown := sorted(set(config.feature_flags) - set(FLAGS)):
        raise UnknownFlag(
            f"featureFlags: {unknown[0]!r} is unknown; the flags are {', '.join(FLAGS)}.", fields=["featureFlags"]
        )
    if unknown := sorted(set(config.policy_exposure) - set(KINDS)):
        raise UnknownPolicyType(
            f"policyExposure: {unknown[0]!r} is not a type of policy; the types are {', '.join(KINDS)}.",
            fields=["policyExposure"],
        )
    if config.theme is None:
        return config
    return msgspec.structs.replace(config, theme=theme.check(config.theme))
