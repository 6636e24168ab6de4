"""The signer's settings, read from its environment once."""

import os
import re
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path

import msgspec

from custody.chains import prices
from custody.chains.price_document import PriceKey, load_key
from custody.kit import environment
from custody.policies import user_wallets
from custody.policies.kinds import PolicyRule
from custody.worker import settings
from custody.worker.settings import WorkerSettings


class ImportFlags(msgspec.Struct, frozen=True):
    """Permission to import private keys at all, into agents of tenants, and into people's own wallets."""

    any: bool = False
    vault: bool = False
    user: bool = False


_PRIVATE_HOSTS = "SERVICE_PROXY_ALLOW_PRIVATE_HOSTS"
# An entry that is an address or a network; which ones these are is the proxy's to judge.
_BY_ADDRESS = re.compile(r"(?:\A|,)\s*(?:[0-9.]+(?:[/:,\s]|\Z)|\[|[0-9A-Fa-f]*:[^,.:]*:)")


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The signer's settings; the functions that need a key file read it."""

    worker: WorkerSettings
    sign_socket: Path
    reveal_socket: Path
    master_key_file: Path
    # Where the key of a sealed file is.
    master_key_unlock: str | None
    identity_key_file: Path
    checkpoint_file: Path | None
    empty_policy: str
    agent_put_replaces: bool
    allow_broad_secret_routes: bool
    allow_address_routes: bool
    allow_cookie_injection: bool
    allow_unsafe_calls: bool
    imports: ImportFlags
    user_wallet_policies: tuple[PolicyRule, ...]
    prices: Mapping[str, Decimal]
    # Of the one who issues prices; None: those of the file count, for ever.
    prices_key: PriceKey | None
    prices_max_age_seconds: int

    def __repr__(self) -> str:
        return "Settings()"


def read(source: Mapping[str, str] = os.environ) -> Settings:
    """Read and check; a wrong value raises ValueError with the variable's name and what it should be."""
    worker = settings.read(source, "signer", connections=8)
    return Settings(
        worker=worker,
        sign_socket=environment.sign_socket(source),
        reveal_socket=environment.reveal_socket(source),
        master_key_file=environment.path(source, "SERVICE_MASTER_KEY_FILE", worker.home / "master.key"),
        master_key_unlock=source.get("SERVICE_MASTER_KEY_UNLOCK", "").strip() or None,
        identity_key_file=environment.identity_key_file(source),
        checkpoint_file=_checkpoint_file(source),
        empty_policy=environment.choice(source, "SERVICE_EMPTY_POLICY", ("allow", "deny")),
        agent_put_replaces=environment.choice(source, "SERVICE_AGENT_POLICY_PUT", ("tighten", "replace")) == "replace",
        allow_broad_secret_routes=environment.flag(source, "SERVICE_ALLOW_BROAD_SECRET_ROUTES", default=False),
        allow_address_routes=_BY_ADDRESS.search(source.get(_PRIVATE_HOSTS, "")) is not None,
        allow_cookie_injection=environment.flag(source, "SERVICE_ALLOW_COOKIE_INJECTION", default=False),
        allow_unsafe_calls=environment.flag(source, "SERVICE_ALLOW_UNSAFE_CALLS", default=False),
        imports=ImportFlags(
            any=environment.flag(source, "SERVICE_ALLOW_PRIVATE_KEY_IMPORT", default=False),
            vault=environment.flag(source, "SERVICE_ALLOW_VAULT_PRIVATE_KEY_IMPORT", default=False),
            user=environment.flag(source, "SERVICE_ALLOW_USER_PRIVATE_KEY_IMPORT", default=False),
        ),
        user_wallet_policies=user_wallets.default_policies(source),
        prices=prices.load(source).by_whole_name,
        prices_key=load_key(source),
        prices_max_age_seconds=environment.integer(
            source, "SERVICE_PRICES_MAX_AGE_SECONDS", 3_600, low=30, high=7 * 86_400
        ),
    )


def _checkpoint_file(source: Mapping[str, str]) -> Path | None:
    given = source.get("SERVICE_CHECKPOINT_FILE", "").strip()
    return environment.path(source, "SERVICE_CHECKPOINT_FILE", "") if given else None
