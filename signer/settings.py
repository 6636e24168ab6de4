"""What the signer reads from its environment, once. Decisions 2."""

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from custody.chains import table
from custody.kit import environment


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The signer's settings; key files are read by who needs them."""

    production: bool
    home: Path
    database_url: str
    sign_socket: Path
    reveal_socket: Path
    master_key_file: Path
    platform_key_file: Path
    checkpoint_file: Path | None
    issuer: str
    peer_uids: dict[str, int]
    empty_policy: str
    agent_put_replaces: bool
    allow_broad_secret_routes: bool
    allow_cookie_injection: bool
    scoped_platform_keys: bool
    pool_size: int
    chains: table.ChainTable

    def __repr__(self) -> str:
        return "Settings()"


def read(source: Mapping[str, str] = os.environ) -> Settings:
    """Read and check; a wrong value raises ValueError with the variable's name and what it should be."""
    home = environment.home(source)
    return Settings(
        production=environment.choice(source, "SERVICE_ENV", ("development", "production")) == "production",
        home=home,
        database_url=environment.url_from_home(source, "signer"),
        sign_socket=environment.sign_socket(source),
        reveal_socket=environment.reveal_socket(source),
        master_key_file=environment.path(source, "SERVICE_MASTER_KEY_FILE", home / "master.key"),
        platform_key_file=environment.path(source, "SERVICE_PLATFORM_KEY_FILE", home / "platform.key"),
        checkpoint_file=_checkpoint_file(source),
        issuer=environment.public_url(source),
        peer_uids=_uids(source.get("SERVICE_PEER_UIDS", "")),
        empty_policy=environment.choice(source, "SERVICE_EMPTY_POLICY", ("allow", "deny")),
        agent_put_replaces=environment.choice(source, "SERVICE_AGENT_POLICY_PUT", ("tighten", "replace")) == "replace",
        allow_broad_secret_routes=environment.flag(source, "SERVICE_ALLOW_BROAD_SECRET_ROUTES", default=False),
        allow_cookie_injection=environment.flag(source, "SERVICE_ALLOW_COOKIE_INJECTION", default=False),
        scoped_platform_keys=environment.flag(source, "SERVICE_SCOPED_PLATFORM_KEYS", default=True),
        pool_size=environment.integer(source, "SERVICE_SIGNER_CONNECTIONS", 8, low=2, high=64),
        chains=table.load(source),
    )


def _checkpoint_file(source: Mapping[str, str]) -> Path | None:
    given = source.get("SERVICE_CHECKPOINT_FILE", "").strip()
    return Path(given) if given else None


def _uids(text: str) -> dict[str, int]:
    """`api:64712,scheduler:64713`; a process that is not named must run under the signer's own uid."""
    found = {}
    for part in filter(None, text.split(",")):
        name, _, uid = part.partition(":")
        if not uid.isdigit():
            raise environment.BadSetting("SERVICE_PEER_UIDS", "must look like api:64712,scheduler:64713")
        found[name] = int(uid)
    return found
