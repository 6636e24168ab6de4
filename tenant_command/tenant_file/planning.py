"""A plan while it is made: what is wanted, what there is, and the steps so far. Pure."""

from collections.abc import Sequence
from typing import Any, Final

from tenant_command.tenant_file.comparing import Change, Rule
from tenant_command.tenant_file.looser import looser_change, looser_new, looser_without
from tenant_command.tenant_file.state import Item, State
from tenant_command.tenant_file.steps import Plan, Request, Step, Verb, Who
from words.texts.plain import clip

_SHOWN: Final = 100
PATHS: Final = {
    "credentialRoutes": "/secrets/routes",
    "paymentRoutes": "/payment-routes",
    "webhooks": "/webhooks",
    "secrets": "/secrets",
    "policySets": "/policy-sets",
}
WORDS: Final = {
    "secrets": "secret",
    "policySets": "policy set",
    "tenantPolicySet": "policy set of every agent",
    "agents": "agent",
    "credentialRoutes": "credential route",
    "paymentRoutes": "payment route",
    "webhooks": "webhook",
    "appClients": "app client",
    "saml": "SAML provider",
    "oidcProviders": "OIDC provider",
    "ssoDomains": "SSO domain",
    "config": "configuration",
}


class Planning:
    """A plan while it is made."""

    def __init__(self, wanted: dict[str, Any], present: State, who: Who, *, prune: bool) -> None:
        self.wanted, self.present, self.who, self.prune = wanted, present, who, prune
        self.plan = Plan()
        # What may wait for people comes last, so that it holds nothing up; what is deleted, after all that named it.
        self.last: list[Step] = []
        self.deleted: list[Step] = []

    def by_name(self, section: str, name: str) -> list[tuple[dict[str, Any], Item | None]]:
        """Each thing that the file names, with what there is of that name."""
        known = {item.said[name]: item for item in self.present.items(section)}
        return [(one, known.get(one[name])) for one in self.wanted[section]]

    def absent(self, section: str, name: str) -> list[Item]:
        """List what there is and the file does not name."""
        said = {one[name] for one in self.wanted[section]}
        return [item for item in self.present.items(section) if item.said[name] not in said]

    def keep_or_delete(self, section: str, item: Item, name: str, affects: str, *, looser: Sequence[str] = ()) -> None:
        """Leave what the file does not name, or delete it where that is asked for."""
        if not self.prune:
            self.plan.kept.append(f"{WORDS[section]} {name}" if name else WORDS[section])
            return
        tenant = f"/tenants/{self.who.tenant}"
        path = {
            "appClients": f"{tenant}/app-clients/{item.id}",
            "ssoDomains": f"{tenant}/sso-domains/{item.id}",
            "saml": f"{tenant}/saml-sso",
        }.get(section) or f"{PATHS[section]}/{item.id}"
        looser = [*looser_without(section, item.said), *looser]
        watches = f"{section}/{item.id}" if section in PATHS else section
        request = Request("DELETE", path)
        self.deleted.append(
            self.step("delete", section, name, (request,), affects=affects, looser=looser, watches=watches)
        )

    def keep_or_delete_absent(self, section: str, name: str, affects: str) -> None:
        """The same for all of a section."""
        for item in self.absent(section, name):
            self.keep_or_delete(section, item, item.said[name], affects)

    def make(self, section: str, name: str, one: dict[str, Any], *requests: Request, affects: str = "") -> None:
        """Add the step that makes a thing."""
        looser = looser_new(section, one)
        self.add(self.step("make", section, name, requests, affects=affects, looser=looser))

    def change(  # noqa: PLR0913 - all that a change is
        self,
        section: str,
        name: str,
        request: Request,
        differing: Sequence[Change],
        affects: str,
        *,
        watches: str | None = None,
        looser: Sequence[str] = (),
    ) -> None:
        """Add the step that changes a thing."""
        looser = [*looser_change(section, differing), *looser]
        self.add(
            self.step(
                "change", section, name, (request,), changes=differing, affects=affects, looser=looser, watches=watches
            )
        )

    def step(  # noqa: PLR0913 - all that a step is
        self,
        verb: Verb,
        section: str,
        name: str,
        requests: Sequence[Request],
        *,
        watches: str | None = None,
        changes: Sequence[Change] = (),
        rules: Sequence[Rule] = (),
        affects: str = "",
        looser: Sequence[str] = (),
        votes: bool = False,
    ) -> Step:
        """Make a step."""
        return Step(
            verb=verb,
            section=section,
            name=name,
            requests=tuple(requests),
            watches=section if watches is None else watches,
            changes=tuple(changes),
            rules=tuple(rules),
            affects=affects,
            looser=tuple(looser),
            action="webhooks" if section == "webhooks" else "tenantAdmin",
            votes=votes,
        )

    def add(self, step: Step) -> None:
        """Add a step; one that needs votes comes after all others."""
        (self.last if step.votes else self.plan.steps).append(step)

    def same(self, section: str) -> None:
        """Count a thing that is as the file says."""
        self.plan.same[section] = self.plan.same.get(section, 0) + 1

    def problem(self, sentence: str) -> None:
        """Note why nothing is sent at all."""
        self.plan.problems.append(sentence)

    def note(self, sentence: str) -> None:
        """Note what the plan cannot do."""
        self.plan.notes.append(sentence)

    def whom(self, agents: Sequence[str] | None) -> str:
        """Those of the agents that are named, or all where none is."""
        if not agents:
            named = {one["id"] for one in self.wanted.get("agents") or ()}
            known = {item.id for item in self.present.items("agents")} | named
            return f"every agent ({len(known):,} now), and those that are made later"
        return f"agent{'s' if len(agents) > 1 else ''} {clip(', '.join(agents), _SHOWN)}"
