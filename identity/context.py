"""The parts of a running identity process."""

from collections.abc import Mapping
from dataclasses import dataclass

from custody.chains.table import ChainTable
from custody.kit.oauth_endpoints import OAuthEndpoints, OAuthName
from custody.kit.quotas import Limits
from custody.worker.keys import Keys
from custody.worker.state import Worker
from custody.worker.token_keys import Minter


@dataclass(frozen=True, kw_only=True)
class Identity(Worker):
    """Wired together once, in `__main__`. Its sealer holds identity's key, never the master key."""

    keys: Keys
    minter: Minter
    chains: ChainTable
    allow_self_registration: bool
    limits: Limits
    # Google, Discord and X: their addresses, and our client at each for which there is one.
    oauth_endpoints: Mapping[OAuthName, OAuthEndpoints]
    oauth_clients: Mapping[OAuthName, str]
    oauth_key_sets: Mapping[str, str]
    # Where the operator lets people go who sign in without naming a tenant.
    login_redirects: tuple[str, ...]
