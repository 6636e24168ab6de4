"""What the checklist looks at, and what it says. Spec 2/4.3."""

from datetime import datetime
from typing import Literal

import msgspec

from custody.identity.app_clients import AppClient
from custody.identity.mfa import MfaPolicy
from custody.kit.deployment import Deployment

Status = Literal["pass", "warning", "fail"]


class Judging(msgspec.Struct, frozen=True, rename="camel"):
    """Of what the signer judges by, the part that the checklist looks at; the defaults are of who saved nothing."""

    auto_expire_seconds: int = 86_400
    uncovered_effects: Literal["queue", "allow", "refuse"] = "queue"
    mfa: MfaPolicy = MfaPolicy()


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
    oldest_tenant_key: datetime | None = None


class Item(msgspec.Struct, frozen=True):
    """One thing that was looked at; `remediation` says what to do, and is empty where nothing need be done."""

    id: str
    label: str
    status: Status
    description: str
    remediation: str


class Summary(msgspec.Struct, frozen=True, rename={"passed": "pass"}):
    """How many items came out how."""

    passed: int
    warning: int
    fail: int


class Checklist(msgspec.Struct, frozen=True, rename="camel"):
    """The whole list, at one moment."""

    tenant_id: str
    generated_at: str
    summary: Summary
    items: list[Item]
