"""The data of a file from what the service has: names in place of ids, and references in place of values. Pure."""

import re
from typing import Any, Final

from tenant_command.tenant_file.shape import FOR_PEOPLE, SINGLE, TENANT, VERSION, kind_of
from tenant_command.tenant_file.state import GONE, Item, State

_MADE_BY_SERVICE: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_NO_NAME: Final = re.compile(r"[^A-Z0-9]+")
# By name; the rest in the order in which it was made, which decides between routes of one priority.
_SORTED: Final = {"agents": "id", "secrets": "name", "policySets": "name", "appClients": "id", "ssoDomains": "domain"}


def tenant_as_data(state: State, *, is_person: bool) -> tuple[dict[str, Any], list[str]]:
    """Give the file's data, and sentences about what it lacks."""
    found: dict[str, Any] = {"version": VERSION}
    lacks: list[str] = []
    for section in TENANT.fields:
        if section == "version":
            continue
        if section in FOR_PEOPLE and not is_person:
            lacks.append(f"`{section}` is not in it: only an owner or admin who signed in reads that.")
            continue
        items = [item for item in _in_order(section, state.items(section)) if not _lacks(section, item, lacks)]
        said = [_words(section, item, state) for item in items]
        if said or section != "config":
            found[section] = (said[0] if said else None) if section in SINGLE else said
    _refer("secrets", found)
    return found, lacks


def _in_order(section: str, items: list[Item]) -> list[Item]:
    name = _SORTED.get(section)
    return sorted(items, key=lambda item: str(item.said[name])) if name else items


def _words(section: str, item: Item, state: State) -> dict[str, Any]:
    kind, said = kind_of(section), item.said
    if section == "agents":
        said = said | {"policies": state.policies.get(item.id, [])}
    if "policies" in said:
        said = said | {"policies": [_rule(rule) for rule in said["policies"]]}
    if section == "oidcProviders":
        # What was found out about the issuer: elsewhere it may say something else of itself.
        return {name: value for name, value in said.items() if value is not None and name in kind.trim(said)}
    found: dict[str, Any] = kind.trim(said)
    return found


def _rule(rule: dict[str, Any]) -> dict[str, Any]:
    """A rule without the id that the service made for it: another tenant gets another."""
    identity = rule["id"] or ""
    return rule | {"id": None} if _MADE_BY_SERVICE.fullmatch(identity) else rule


def _lacks(section: str, item: Item, lacks: list[str]) -> bool:
    if not _is_gone(item.said):
        return False
    lacks.append(f"`{section}`: {item.said.get('hostPattern', item.id)} is not in it, for its secret is deleted.")
    return True


def _is_gone(value: Any) -> bool:
    match value:
        case str():
            return value.startswith(GONE)
        case dict():
            return any(map(_is_gone, value.values()))
        case list():
            return any(map(_is_gone, value))
        case _:
            return False


def _refer(section: str, found: dict[str, Any]) -> None:
    """Say where the values are to come from: a variable for each, which is set by anyone who applies it."""
    taken: set[str] = set()
    for secret in found[section]:
        name = base = f"SECRET_{_NO_NAME.sub('_', secret['name'].upper()).strip('_') or 'VALUE'}"
        number = 1
        while name in taken:
            number += 1
            name = f"{base}_{number}"
        taken.add(name)
        secret["value"] = {"env": name}
