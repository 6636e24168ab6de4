"""What a story reaches the world through: the database, the signer, the chains. Wired once per process."""

from dataclasses import dataclass

from custody.chains.rpc import Rpc
from custody.chains.table import ChainTable
from custody.kit.db import Pool
from custody.protocol.client import SignerClient


@dataclass(frozen=True)
class Ports:
    """Handed to every story first; there is no other way to the outside."""

    pool: Pool
    signer: SignerClient
    chains: ChainTable
    rpc: Rpc
    # What the operator lets credential routes say; the signer has its own word on it.
    allow_broad_routes: bool = False
    allow_cookie_injection: bool = False
