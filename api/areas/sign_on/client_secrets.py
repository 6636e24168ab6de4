"""Secrets of our clients at tenants' OIDC providers: in the operator's environment, under a name that a tenant gives.

A name can be meant by several tenants: ids that differ in case or punctuation make one key, and the key of one is the
beginning of another's. Anybody may register a tenant, so a name counts only while it can be one tenant's alone, or
while a second variable beside it, `<name>_FOR`, says whose it is. That is looked at whenever a secret is used.
"""

from custody.identity.oidc_provider import FOR, InvalidOidcProvider, ProviderProblem, check_variable, keys_admitting
from custody.kit.errors import Conflict
from custody.ports import Ports
from custody.sign_on import provider_store


class OidcSecretAmbiguous(Conflict):
    """clientSecretEnv could name another tenant's secret; ask the operator to set <name>_FOR, or use another name."""


async def check(ports: Ports, tenant: str, name: str) -> None:
    """Raise unless the variable is this tenant's and no other's; whether it is set does not matter."""
    try:
        check_variable(name, tenant)
    except ProviderProblem as problem:
        raise InvalidOidcProvider(f"clientSecretEnv: {problem.sentence}", fields=["clientSecretEnv"]) from None
    owner = ports.oidc_secrets.get(f"{name}{FOR}")
    if owner is None:
        known = await provider_store.admitting(ports.pool, keys_admitting(name))
        if known == 1:
            return
    elif owner == tenant:
        return
    sentence = (
        f"clientSecretEnv: {name} could name another tenant's secret; ask the operator to set {name}{FOR} to this "
        "tenant's id, or use another name."
    )
    raise OidcSecretAmbiguous(sentence, fields=["clientSecretEnv"])


async def secret_of(ports: Ports, tenant: str, name: str) -> str | None:
    """The secret in a variable that a tenant named; None where it is not set, as for a public client."""
    await check(ports, tenant, name)
    return ports.oidc_secrets.get(name)
