"""The maximum age of a second factor, by a tenant's policy."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from custody.kit.described import described

Action = Literal[
    "vaultSigning",
    "keyImport",
    "keyExport",
    "recoveryCodes",
    "tenantAdmin",
    "signers",
    "webhooks",
    "audit",
    "intents",
    "approvals",
    "userWallets",
]
Seconds = Annotated[int, Meta(ge=30, le=3600)]


class DisableFor(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Actions that the tenant forbids, whatever the deployment allows."""

    key_import: Annotated[bool, described("True to forbid importing keys.")] = False
    key_export: Annotated[bool, described("True to forbid exporting keys.")] = False


class MfaPolicy(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """`authAbuseConfig.mfa`; the defaults are those of a tenant that saved nothing."""

    max_age_seconds: Annotated[Seconds, described("For how many seconds a second factor counts as recent.")] = 300
    max_age_for: Annotated[dict[Action, Seconds], described("The same for single actions.")] = {}
    require_for: Annotated[
        dict[Action, bool], described("Actions by name, and whether they need a recent second factor.")
    ] = {}
    disable_for: Annotated[DisableFor, described("Actions that the tenant forbids.")] = DisableFor()
    allow_delegated_signer_automation: Annotated[
        bool, described("True if a single signer may authorise orders beside an agent's token.")
    ] = True
    allow_key_quorum_automation: Annotated[
        bool, described("True if a key quorum may authorise orders beside an agent's token.")
    ] = True


def max_age(policy: MfaPolicy, action: Action) -> int:
    """Seconds for which a second factor serves this action."""
    return policy.max_age_for.get(action, policy.max_age_seconds)


def is_fresh(policy: MfaPolicy, action: Action, mfa_at: int | None, now: int) -> bool:
    """Say whether a factor shown at `mfa_at` (Unix seconds) is recent enough now; a time yet to come never is."""
    if not policy.require_for.get(action, True):
        return True
    return mfa_at is not None and 0 <= now - mfa_at <= max_age(policy, action)


def counting_mfa(mfa_at: int | None, counts_from: int | None) -> int | None:
    """`mfa_at` of a token, where it still counts: not when it is of before the person's factors changed.

    `counts_from` is of the session (SQL `mfa_counts_from`): None says that nothing which it showed counts any more.
    """
    return mfa_at if mfa_at is not None and counts_from is not None and mfa_at >= counts_from else None
