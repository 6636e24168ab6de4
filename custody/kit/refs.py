"""References that carry their tenant, so that no query can forget it (promise P4)."""

import msgspec


class AgentRef(msgspec.Struct, frozen=True):
    """One agent of one tenant. Only the request pipeline and the signer's proof check make these."""

    tenant: str
    agent: str
