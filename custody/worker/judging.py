"""The part of a tenant's configuration that the signer judges by, under a MAC."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from custody.identity.joining import InvitationPolicy, WalletPolicy
from custody.identity.mfa import MfaPolicy
from custody.kit.cache import Cache
from custody.policies.named_tokens import NamedToken
from custody.worker.sealing import Sealer, Tampered, fields

JUDGING_MAC = "judging-mac"
# Configurations that were checked and parsed, by their text and MAC.
_KEPT = 4_096
_KEPT_SECONDS = 600.0


class Judging(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """`approvalConfig` and `authAbuseConfig` as far as they decide; who saved nothing has the defaults."""

    auto_expire_seconds: Annotated[int, Meta(ge=0, le=31_536_000)] = 86_400
    uncovered_effects: Literal["queue", "allow", "refuse"] = "queue"
    mfa: MfaPolicy = MfaPolicy()
    invitations: InvitationPolicy = InvitationPolicy()
    wallet: WalletPolicy = WalletPolicy()
    # What the owners call their tokens: for words alone, nothing is judged by it.
    tokens: tuple[NamedToken, ...] | UnsetType = UNSET

    @property
    def named(self) -> tuple[NamedToken, ...]:
        """The tokens that have a name; unset is stored where there are none, as before there were names."""
        return () if self.tokens is UNSET else self.tokens


DEFAULT = Judging()


class JudgingSeals:
    """Seals and opens a tenant's judging configuration."""

    def __init__(self, sealer: Sealer) -> None:
        self._sealer = sealer
        self._kept: Cache[tuple[str, int, str, bytes | None], Judging] = Cache(_KEPT, _KEPT_SECONDS)

    def seal(self, tenant: str, version: int, document: dict[str, Any]) -> tuple[str, bytes]:
        """The canonical text and its MAC; raises msgspec.ValidationError for what is not a judging configuration."""
        text = msgspec.json.encode(msgspec.convert(document, Judging)).decode()
        return text, self._sealer.mac(JUDGING_MAC, tenant, fields(tenant, version, text))

    def open(self, tenant: str, version: int, text: str | None, mac: bytes | None) -> Judging:
        """The configuration of a tenant; the default where none was saved.

        A row deleted behind our back gives the defaults back, which queue what they cannot judge.
        """
        if text is None:
            if version != 0:
                raise Tampered
            return DEFAULT
        key = (tenant, version, text, mac)
        if (found := self._kept.get(key)) is None:
            self._sealer.check_mac(mac, JUDGING_MAC, tenant, fields(tenant, version, text))
            found = msgspec.json.decode(text, type=Judging)
            self._kept.put(key, found)
        return found
