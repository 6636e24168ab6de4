"""What a running signer consists of."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Literal

from custody.chains.table import ChainTable
from custody.kit.db import Pool
from signer.judging import JudgingSeals
from signer.policies import PolicySeals
from signer.proofs import Proofs
from signer.sealing import Sealer
from signer.tokens import Minter
from signer.turns import Turns


@dataclass(frozen=True)
class Signer:
    """Wired together once, in `__main__`."""

    pool: Pool
    sealer: Sealer
    minter: Minter
    proofs: Proofs
    policies: PolicySeals
    judging: JudgingSeals
    chains: ChainTable
    empty_policy: Literal["allow", "deny"]
    agent_put_replaces: bool
    turns: Turns = field(default_factory=Turns)
    counters: Counter[str] = field(default_factory=Counter)
