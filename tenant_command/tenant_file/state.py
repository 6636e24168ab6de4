"""The state of the service, in the words of the file: names in place of ids, and nothing that only the service decides.

Pure: asking is done elsewhere.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from console.wire.failures import Failure
from tenant_command.tenant_file.shape import kind_of

EVERY_AGENT: Final = "tenant"
# Stands for a name that the service has no more: equal to none that a file can hold.
GONE: Final = "\0gone:"


@dataclass(frozen=True)
class Item:
    """One thing that the service has: its id there, and what a file would say of it."""

    id: str
    said: dict[str, Any]
    # Of a policy set: how many agents name it.
    agents: int = field(default=0, compare=False)


@dataclass
class State:
    """The things that were read, section by section."""

    sections: dict[str, list[Item]] = field(default_factory=dict)
    # Of those agents that were asked for.
    policies: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    def items(self, section: str) -> list[Item]:
        """The things of a section."""
        return self.sections.get(section, [])

    def find(self, watch: str) -> Any:
        """Return what a step relies on: a whole section, one thing of it (`section/id`), or the rules of an agent."""
        section, slash, identity = watch.partition("/")
        if section == "policies":
            return self.policies.get(identity)
        if slash:
            return next((item for item in self.items(section) if item.id == identity), None)
        return self.items(section)

    def see(self, watch: str, found: Any) -> None:
        """Take what was read again."""
        section, slash, identity = watch.partition("/")
        if section == "policies":
            self.policies[identity] = found
        elif slash:
            # In its place: a list is compared as it comes, the oldest first.
            others = [found if item.id == identity else item for item in self.items(section)]
            known = others if found in others else [*others, found]
            self.sections[section] = [item for item in known if item is not None]
        else:
            self.sections[section] = found

    def ids(self, section: str) -> dict[str, str]:
        """The ids of named things, by name."""
        return {item.said["name"]: item.id for item in self.items(section)}

    def names(self, section: str) -> dict[str, str]:
        """The names, by id."""
        return {item.id: item.said["name"] for item in self.items(section)}


Names = Callable[[str | None], str | None]


def names_of(known: Mapping[str, str]) -> Names:
    """Make what gives the name of an id; an id that nothing has any more gets one that no file can hold."""
    return lambda found: None if found is None else known.get(found, f"{GONE}{found}")


def rule_of(raw: Mapping[str, Any], sets: Names) -> dict[str, Any]:
    """One rule as a file has it, with its id."""
    config = {name: value for name, value in raw["config"].items() if value is not None}
    if raw["type"] == "policy-set":
        config["policySet"] = sets(config.get("policySet"))
    return {"type": raw["type"], "id": raw.get("id"), "enabled": raw["enabled"], "config": config}


def item_of(section: str, raw: Mapping[str, Any], secrets: Names, sets: Names) -> Item:
    """One thing of a section."""
    said = {name: raw[name] for name in kind_of(section).fields if name in raw}
    match section:
        case "policySets" | "tenantPolicySet":
            said["policies"] = [rule_of(rule, sets) for rule in raw["policies"]]
            return Item(raw["id"], said, raw["agents"])
        case "credentialRoutes":
            said["secret"] = secrets(raw["secretId"])
            said["alsoInject"] = [
                {name: value for name, value in one.items() if name != "secretId"}
                | {"secret": secrets(one["secretId"])}
                for one in raw["alsoInject"]
            ]
            return Item(raw["id"], said)
        case "oidcProviders":
            said["scopes"] = [scope for scope in raw["scopes"] if scope not in ("openid", "email")]
            said["audience"] = None if raw["audience"] == [raw["clientId"]] else raw["audience"]
            return Item(raw["id"], said)
        case "config":
            said["secretRoutePresets"] = [
                {name: value for name, value in one.items() if name != "platformSecretId"}
                | {"platformSecret": secrets(one.get("platformSecretId"))}
                for one in raw["secretRoutePresets"]
            ]
            return Item(section, said)
        case "saml":
            return Item(section, said)
        case "ssoDomains":
            return Item(raw["domain"], said)
        case _:
            return Item(raw["id"], said)


def items_of(section: str, raw: Any, secrets: Names, sets: Names) -> list[Item]:
    """The things of a section, oldest first: the service lists the newest first."""
    match section:
        case "policySets":
            rows = [one for one in reversed(raw) if one["id"] != EVERY_AGENT]
        case "tenantPolicySet":
            rows = [one for one in raw if one["id"] == EVERY_AGENT]
        case "oidcProviders":
            rows = raw["providers"]
        case "saml":
            rows = [raw] if raw["updatedAt"] is not None else []
        case "config":
            rows = [raw]
        case _:
            rows = list(reversed(raw))
    found = [item_of(section, one, secrets, sets) for one in rows]
    if section in ("secrets", "policySets"):
        _check_names(section, found)
    return found


def _check_names(section: str, items: list[Item]) -> None:
    seen: set[str] = set()
    for item in items:
        if item.said["name"] in seen:
            what = "policy sets" if section == "policySets" else "secrets"
            raise Failure(f"Two {what} are named {item.said['name']!r}: a file names them, so give one another name.")
        seen.add(item.said["name"])
