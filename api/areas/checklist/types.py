"""The facts that the checklist looks at, and its answer."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Literal

import msgspec

from custody.identity.app_clients import AppClient
from custody.identity.mfa import MfaPolicy
from custody.identity.saml_config import SamlConfig
from custody.kit.deployment import Deployment
from custody.kit.described import Instant, described

Status = Literal["pass", "warning", "fail"]


class Judging(msgspec.Struct, frozen=True, rename="camel"):
    """Of what the signer judges by, the part that the checklist looks at; the defaults are of who saved nothing."""

    auto_expire_seconds: int = 86_400
    uncovered_effects: Literal["queue", "allow", "refuse"] = "queue"
    mfa: MfaPolicy = MfaPolicy()


class DomainFact(msgspec.Struct, frozen=True, kw_only=True):
    """An e-mail domain of the tenant."""

    domain: str
    sso_required: bool = False
    verified: bool = False
    missing_since: datetime | None = None


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that is looked at: figures, times and settings, no secret and no content."""

    now: datetime
    deployment: Deployment = Deployment()
    judging: Judging = Judging()
    owners: int = 0
    admins: int = 0
    admins_without_factor: int = 0
    # Of the active ones alone; those that retire are on their way out.
    newest_signing_key: datetime | None = None
    agents_without_hard_rule: int = 0
    app_clients: tuple[AppClient, ...] = ()
    oldest_app_secret: datetime | None = None
    # Of the active ones, again.
    oldest_tenant_key: datetime | None = None
    # Of the origin `localhost`, and pinned by an enabled rule `approval-quorum`.
    loose_approver_keys: int = 0
    sso_domains: tuple[DomainFact, ...] = ()
    # Whether an identity provider is enabled.
    signs_on: bool = False
    saml: SamlConfig | None = None
    # When the keys of each enabled OIDC provider were last fetched.
    oidc_keys: Mapping[str, datetime | None] = {}


class Item(msgspec.Struct, frozen=True):
    """One check; `remediation` says what to do, and is empty if nothing needs to be done."""

    id: Annotated[str, described("The check.")]
    label: Annotated[str, described("Its name for people.")]
    status: Annotated[Status, described("Result of the check.")]
    description: Annotated[str, described("The finding.")]
    remediation: Annotated[str, described("The cure; empty if nothing needs to be done.")]


class Summary(msgspec.Struct, frozen=True, rename={"passed": "pass"}):
    """The number of items by state."""

    passed: Annotated[int, described("Number of passed checks.")]
    warning: Annotated[int, described("Number of warnings.")]
    fail: Annotated[int, described("Number of failed checks.")]


class Checklist(msgspec.Struct, frozen=True, rename="camel"):
    """The whole checklist at one moment."""

    tenant_id: Annotated[str, described("The tenant.")]
    generated_at: Annotated[Instant, described("Time of the report.")]
    summary: Annotated[Summary, described("The items counted by status.")]
    items: Annotated[list[Item], described("Every check.")]
