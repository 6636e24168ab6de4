"""What a story reaches the world through: the database, the signer, the chains. Wired once per process."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

from custody.chains.prices import Prices
from custody.chains.rpc import Rpc
from custody.chains.table import ChainTable
from custody.idempotency.counts import Counts
from custody.kit.bell import Bell
from custody.kit.db import Pool
from custody.kit.deployment import Deployment
from custody.protocol.client import SignerClient
from custody.senders.mail import Mail
from custody.senders.sms import Sms


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
    # None: this deployment sends none.
    mail: Mail | None = None
    sms: Sms | None = None
    counts: Counts = field(default_factory=Counts)
    # Tenant id -> the document of who saved no configuration.
    presets: Mapping[str, str] = field(default_factory=dict)
    deployment: Deployment = field(default_factory=Deployment)
    # What the operator says that coins and tokens cost.
    prices: Prices = field(default_factory=Prices)
    # Set when this process is about to stop: no new work should come here.
    leaving: asyncio.Event = field(default_factory=asyncio.Event)
    # Who waits for events of a tenant.
    bell: Bell = field(default_factory=Bell)
