"""The connections of a use case: the database, the workers, the chains. Built once per process."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

from custody.chains.node_shares import NodeShares
from custody.chains.prices import Prices
from custody.chains.rpc import Rpc
from custody.chains.table import ChainTable
from custody.idempotency.counts import Counts
from custody.kit.cache import Cache
from custody.kit.db import Pool
from custody.kit.deployment import Deployment
from custody.kit.dns_records import DnsRecords
from custody.kit.fair_slots import Bounds
from custody.kit.gathered import Gathered
from custody.kit.maker_store import maker_of
from custody.kit.notifier import Notifier
from custody.kit.oauth_endpoints import OAuthName
from custody.kit.outside import Fetcher, Outside
from custody.kit.quotas import Limits
from custody.kit.tenant_semaphore import TenantSemaphore
from custody.notifications.mail import Mail
from custody.notifications.sms import Sms
from custody.protocol.signer.agents import Agent
from custody.protocol.workers import Workers

# Of all tenants together; one that is forgotten is asked for again.
MAX_KNOWN_ADDRESSES = 50_000
# Of different people; the connections for what somebody looks at are for few more.
BALANCES_AT_ONCE = 3
# Of different people, each of whom has one question to a name server under way.
DNS_AT_ONCE = 8
# Questions to services about orders: of all, of one agent and of one tenant; the last places are for tenants with few.
MAX_CHECKS = 400
MAX_CHECKS_OF_AGENT = 32
MAX_CHECKS_OF_TENANT = 128
CHECKS_KEPT_BACK = 100
CHECKS = Bounds(MAX_CHECKS, MAX_CHECKS_OF_AGENT, MAX_CHECKS_OF_TENANT, CHECKS_KEPT_BACK, MAX_CHECKS_OF_AGENT)


@dataclass(frozen=True)
class Ports:
    """The first argument of every use case; there is no other way to the outside."""

    pool: Pool
    workers: Workers
    chains: ChainTable
    rpc: Rpc
    # How much of the nodes each person's tenants have.
    node_shares: NodeShares = field(default_factory=NodeShares)
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
    # How much each tenant and person may have; what is written, the signer counts.
    quotas: Limits = field(default_factory=Limits)
    # Our clients' secrets at Google, Discord and X.
    oauth_secrets: Mapping[OAuthName, str] = field(default_factory=dict)
    # Variables with the secrets of our clients at tenants' OIDC providers, and those that say whose each is.
    oidc_secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    # What the operator says that coins and tokens cost.
    prices: Prices = field(default_factory=Prices)
    # Set when this process is about to stop: no new work should come here.
    leaving: asyncio.Event = field(default_factory=asyncio.Event)
    # What searches may take of the pool: those of the audit trail, and of approvals by their orders.
    search_share: TenantSemaphore = field(default_factory=lambda: TenantSemaphore(made_by=maker_of))
    # Who may ask nodes for many balances at once.
    balance_share: TenantSemaphore = field(
        default_factory=lambda: TenantSemaphore(seats=BALANCES_AT_ONCE, made_by=maker_of)
    )
    # TXT records of e-mail domains, and which tenants may ask for one at once: a slow name server holds up its own.
    dns: DnsRecords = field(default_factory=DnsRecords)
    dns_share: TenantSemaphore = field(default_factory=lambda: TenantSemaphore(seats=DNS_AT_ONCE, made_by=maker_of))
    # Addresses of agents that the signer vouched for, with their tenants; an address never changes.
    known_addresses: Cache[object, bool] = field(default_factory=lambda: Cache(MAX_KNOWN_ADDRESSES))
    # Agents whose rows are read under way together.
    agents_read: Gathered[Agent] = field(default_factory=Gathered)
    # The way to servers that others name.
    fetcher: Fetcher = field(default_factory=lambda: Fetcher(Outside(loopback_allowed=False)))
    # The way to services that orders are asked about: an agent whose service is slow holds up no other, and no sign-on.
    checks: Fetcher = field(default_factory=lambda: Fetcher(Outside(loopback_allowed=False), CHECKS))
    # Who waits for events of a tenant.
    notifier: Notifier = field(default_factory=Notifier)
