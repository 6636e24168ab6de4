"""Planning how people get in: app clients, identity providers, domains; and the configuration. Pure."""

from dataclasses import replace
from typing import Any

from tenant_command.tenant_file.comparing import changes
from tenant_command.tenant_file.looser import looser_change, looser_new
from tenant_command.tenant_file.planning import WORDS, Planning
from tenant_command.tenant_file.shape import AUTH_ABUSE, CONFIG, OIDC_PROVIDER, kind_of
from tenant_command.tenant_file.state import Item
from tenant_command.tenant_file.steps import IdOf, Request, Step


def app_clients(planning: Planning) -> None:
    """Plan the app clients."""
    kind, path = kind_of("appClients"), f"/tenants/{planning.who.tenant}/app-clients"
    for one, item in planning.by_name("appClients", "id"):
        # The whole of it is replaced.
        whole = kind.trim(one)
        if item is None:
            planning.make("appClients", one["id"], one, Request("POST", path, whole))
        elif differing := changes(kind, one, item.said):
            request, affects = Request("PUT", path, whole), "people who sign in there"
            planning.change("appClients", one["id"], request, differing, affects)
        else:
            planning.same("appClients")
    planning.keep_or_delete_absent("appClients", "id", "its secrets stop working")


def saml(planning: Planning) -> None:
    """Plan the SAML provider; none in the file means that there is to be none."""
    kind, path = kind_of("saml"), f"/tenants/{planning.who.tenant}/saml-sso"
    one, item = planning.wanted["saml"], next(iter(planning.present.items("saml")), None)
    if one is None:
        if item is not None:
            planning.keep_or_delete("saml", item, "", "nobody signs in by it any more")
        return
    request = Request("PUT", path, kind.trim(one))
    if item is None:
        planning.make("saml", "", one, request)
    elif differing := changes(kind, one, item.said):
        planning.change("saml", "", request, differing, "all who sign in by it")
    else:
        planning.same("saml")


def oidc_providers(planning: Planning) -> None:
    """Plan the OIDC providers. One request replaces all: those that the file does not name go along as they are."""
    kind, section = OIDC_PROVIDER, "oidcProviders"
    wanted, present = planning.wanted[section], planning.present.items(section)
    known = {item.id: item for item in present}
    steps: list[Step] = []
    for one in wanted:
        item = known.get(one["id"])
        if item is None:
            steps.append(planning.step("make", section, one["id"], (), looser=looser_new(section, one)))
        elif differing := changes(kind, one, item.said):
            looser, affects = looser_change(section, differing), "all who sign in by it"
            steps.append(
                planning.step("change", section, one["id"], (), changes=differing, looser=looser, affects=affects)
            )
        else:
            planning.same(section)
    absent = planning.absent(section, "id")
    if planning.prune:
        affects = "nobody signs in by it any more"
        steps += [planning.step("delete", section, item.id, (), affects=affects) for item in absent]
    else:
        planning.plan.kept += [f"{WORDS[section]} {item.id}" for item in absent]
    bodies = [_provider(one, known.get(one["id"])) for one in wanted]
    bodies += [kind.trim(item.said) for item in absent if not planning.prune]
    if not steps and [one["id"] for one in bodies] != [item.id for item in present]:
        steps.append(planning.step("change", section, "order", (), affects="nobody: their order only"))
    path = f"/tenants/{planning.who.tenant}/oidc-providers"
    for number, step in enumerate(steps, 1):
        requests = (Request("PUT", path, {"providers": bodies}),) if number == len(steps) else ()
        planning.add(replace(step, requests=requests))


def _provider(one: dict[str, Any], item: Item | None) -> dict[str, Any]:
    found: dict[str, Any] = OIDC_PROVIDER.trim(one)
    if item is None or item.said["issuer"] != one["issuer"]:
        return found
    # What was found out about this issuer once stays as it is.
    open_fields = [name for name, field in OIDC_PROVIDER.fields.items() if field.open and one.get(name) is None]
    return found | {name: item.said[name] for name in open_fields if item.said.get(name) is not None}


def sso_domains(planning: Planning) -> None:
    """Plan the e-mail domains; that one is the tenant's is proven elsewhere."""
    kind, path = kind_of("ssoDomains"), f"/tenants/{planning.who.tenant}/sso-domains"
    known = {item.id.lower(): item for item in planning.present.items("ssoDomains")}
    for one in planning.wanted["ssoDomains"]:
        name = one["domain"]
        item, request = known.pop(name.lower(), None), Request("POST", path, one)
        affects = f"people with an address in {name}"
        if item is None:
            planning.make("ssoDomains", name, one, request, affects=affects)
            planning.note(f"SSO domain {name} counts once its record is published and verified; no file does that")
        elif differing := changes(kind, one, item.said):
            planning.change("ssoDomains", name, request, differing, affects)
        else:
            planning.same("ssoDomains")
    for item in known.values():
        planning.keep_or_delete("ssoDomains", item, item.id, f"people with an address in {item.id}")


def config(planning: Planning) -> None:
    """Plan the configuration: the fields that the file has; the others are sent as they are."""
    one, [item] = planning.wanted["config"], planning.present.items("config")
    differing = changes(CONFIG, one, item.said)
    if not differing:
        planning.same("config")
        return
    body = CONFIG.trim({name: one.get(name, item.said.get(name)) for name in CONFIG.fields})
    body["secretRoutePresets"] = [_preset(preset) for preset in body["secretRoutePresets"]]
    if "authAbuseConfig" not in {change.field for change in differing}:
        body.pop("authAbuseConfig", None)
    else:
        # A part that is left out would stay as it is, so each is there.
        body["authAbuseConfig"] = {name: {} for name in AUTH_ABUSE.fields} | body["authAbuseConfig"]
        if not planning.who.is_person:
            planning.problem("`config.authAbuseConfig` changes, which is for people: sign in with `custody login`")
    request = Request("PUT", f"/tenants/{planning.who.tenant}/config", body)
    planning.change("config", "", request, differing, "everybody in the tenant")


def _preset(preset: dict[str, Any]) -> dict[str, Any]:
    rest = {name: value for name, value in preset.items() if name != "platformSecret"}
    secret = preset.get("platformSecret")
    return rest if secret is None else rest | {"platformSecretId": IdOf("secrets", secret)}
