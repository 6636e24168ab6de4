"""The settings that identity reads from its environment, once."""

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from custody.identity import login_redirects
from custody.kit import environment, oauth_endpoints
from custody.kit.oauth_endpoints import OAuthEndpoints, OAuthName
from custody.worker import settings
from custody.worker.settings import WorkerSettings


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Identity's settings; the functions that need a key file read it."""

    worker: WorkerSettings
    socket: Path
    key_file: Path
    platform_key_file: Path
    allow_self_registration: bool
    oauth_endpoints: dict[OAuthName, OAuthEndpoints]
    oauth_clients: dict[OAuthName, str]
    login_redirects: tuple[str, ...]

    @property
    def oauth_key_sets(self) -> dict[str, str]:
        """Find where the keys are of each provider that gives ID tokens and at which there is a client."""
        known = ((name, self.oauth_endpoints[name].jwks_url) for name in self.oauth_clients)
        return {name: address for name, address in known if address is not None}

    def __repr__(self) -> str:
        return "Settings()"


def read(source: Mapping[str, str] = os.environ) -> Settings:
    """Read and check; a wrong value raises ValueError with the variable's name and what it should be."""
    worker = settings.read(source, "identity", connections=6)
    return Settings(
        worker=worker,
        socket=environment.identity_socket(source),
        key_file=environment.identity_key_file(source),
        platform_key_file=environment.path(source, "SERVICE_PLATFORM_KEY_FILE", worker.home / "platform.key"),
        allow_self_registration=environment.flag(source, "SERVICE_ALLOW_SELF_REGISTRATION", default=True),
        oauth_endpoints=oauth_endpoints.load(source),
        oauth_clients=oauth_endpoints.client_ids(source),
        login_redirects=login_redirects.load(source),
    )
