"""Planning secrets, the routes that use them, and webhooks. Pure."""

from collections.abc import Sequence
from typing import Any, Final

from tenant_command.tenant_file.comparing import Change, changes, pairs
from tenant_command.tenant_file.looser import looser_below
from tenant_command.tenant_file.planning import PATHS, Planning
from tenant_command.tenant_file.shape import kind_of
from tenant_command.tenant_file.steps import MADE, IdOf, Request, ValueOf

# In a list of things without a name: the fields that tell one from another.
_KEYS: Final = {
    "credentialRoutes": ("hostPattern", "pathPattern", "method", "secret"),
    "paymentRoutes": ("hostPattern", "pathPattern", "method"),
    "webhooks": ("url",),
}


def secrets(planning: Planning) -> None:
    """Plan the secrets: one that is stored is left, for nobody can read its value and compare it."""
    kind = kind_of("secrets")
    for one, item in planning.by_name("secrets", "name"):
        name = one["name"]
        if item is not None:
            if differing := changes(kind, one, item.said, "value"):
                fields = ", ".join(f"`{change.field}`" for change in differing)
                planning.note(f"secret {name}: {fields} differs from the file, and cannot be changed once it is stored")
            planning.same("secrets")
        elif not one.get("value"):
            planning.problem(f"secret {name} is to be made, and the file says no `value` for it")
        else:
            planning.plan.values[name] = one["value"]
            body = {field: value for field, value in one.items() if field != "value"} | {"value": ValueOf(name)}
            # A name is taken once: there is nothing that could be lost.
            request = Request("POST", "/secrets", body)
            planning.add(planning.step("make", "secrets", name, (request,), watches=""))
    planning.keep_or_delete_absent("secrets", "name", "routes that use it fail, and its value is destroyed")


def credential_routes(planning: Planning) -> None:
    """Plan the routes that put secrets into requests."""
    _without_names(planning, "credentialRoutes")


def payment_routes(planning: Planning) -> None:
    """Plan the routes by which is paid."""
    _without_names(planning, "paymentRoutes")


def webhooks(planning: Planning) -> None:
    """Plan the endpoints for events."""
    _without_names(planning, "webhooks")


def _without_names(planning: Planning, section: str) -> None:
    kind, seen = kind_of(section), dict[str, int]()
    wanted = planning.wanted[section]
    paired = pairs(kind, wanted, planning.present.items(section), _KEYS[section])
    absent = [] if planning.prune else [item.said for number, item in paired if number is None and item is not None]
    for number, item in paired:
        if number is None:
            if item is not None:
                looser = looser_below(section, item.said, wanted) if planning.prune else []
                planning.keep_or_delete(section, item, _name(section, item.said), "", looser=looser)
            continue
        one = wanted[number]
        # Of those that are alike in the file this is the which: the key of its request has it.
        alike = repr(kind.canon(one))
        seen[alike] = seen.get(alike, -1) + 1
        name, affects = _name(section, one), "" if section == "webhooks" else planning.whom(one.get("agents"))
        if item is None:
            planning.make(section, name, one, *_making(section, one, seen[alike]), affects=affects)
        elif differing := changes(kind, one, item.said):
            request = Request("PUT", f"{PATHS[section]}/{item.id}", _fields(section, one, differing))
            # What it is not for any more is for another: a place that differs is named in any case.
            leaves = not one.get("enabled", True) or "agents" in {change.field for change in differing}
            others = [*wanted[:number], *wanted[number + 1 :], *absent] if leaves else []
            looser = looser_below(section, item.said, others)
            planning.change(section, name, request, differing, affects, watches=f"{section}/{item.id}", looser=looser)
        else:
            planning.same(section)


def _making(section: str, one: dict[str, Any], number: int) -> list[Request]:
    body = _with_ids(kind_of(section).trim(one))
    if section != "webhooks":
        return [Request("POST", PATHS[section], body, number=number)]
    # The service makes it enabled.
    enabled = body.pop("enabled", True)
    made = Request("POST", PATHS[section], body, number=number)
    return [made] if enabled else [made, Request("PUT", f"{PATHS[section]}/{MADE}", {"enabled": False})]


def _fields(section: str, one: dict[str, Any], differing: Sequence[Change]) -> dict[str, Any]:
    """The changed fields alone; one that the file leaves out gets its default."""
    fields = kind_of(section).fields
    return _with_ids({change.field: one.get(change.field, fields[change.field].default) for change in differing})


def _with_ids(body: dict[str, Any]) -> dict[str, Any]:
    """The body with ids where the file has names."""
    found = dict(body)
    if (secret := found.pop("secret", None)) is not None:
        found["secretId"] = IdOf("secrets", secret)
    if "alsoInject" in found:
        found["alsoInject"] = [
            {name: value for name, value in one.items() if name != "secret"}
            | {"secretId": IdOf("secrets", one["secret"])}
            for one in found["alsoInject"] or ()
        ]
    return found


def _name(section: str, one: dict[str, Any]) -> str:
    if section == "webhooks":
        return str(one["url"])
    method = one.get("method", "*")
    return f"{'any' if method == '*' else method} {one['hostPattern']}{one.get('pathPattern', '/*')}"
