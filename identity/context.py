"""What a running identity process consists of."""

from dataclasses import dataclass

from custody.chains.table import ChainTable
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
