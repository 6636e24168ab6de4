"""Changes of anything but rules that a plan calls looser; tests/console/test_looser.py has the rules."""

from tenant_command.tenant_file.comparing import Change
from tenant_command.tenant_file.looser import looser_below, looser_change, looser_new, looser_without
from tenant_command.tenant_file.plan import plan_of
from tenant_command.tenant_file.state import Item, State
from tenant_command.tenant_file.steps import Who
from tests.fixtures.each import each

PAY = {"hostPattern": "paid.example", "maxPerCall": {"usd": "5"}}


@each(
    ("section", "field", "before", "after", "words"),
    [
        ("credentialRoutes", "hostPattern", "a.example", "*.example", "becomes *.example"),
        ("credentialRoutes", "agents", ["one"], None, "does not confine it any more"),
        ("credentialRoutes", "agents", None, ["one"], ""),
        ("credentialRoutes", "agents", ["one"], ["one", "two"], "also has two"),
        ("credentialRoutes", "enabled", False, None, "it is enabled"),
        ("credentialRoutes", "enabled", None, False, ""),
        ("credentialRoutes", "costMicroUsd", 5, None, "falls from 5 to 0"),
        ("paymentRoutes", "maxPerCall", {"usd": "5"}, {"usd": "6"}, "up to 6 of usd, where 5 was"),
        ("paymentRoutes", "maxPerCall", {"usd": "5"}, {"usd": "4"}, ""),
        ("paymentRoutes", "allowUnknownPayTo", None, True, "nobody named"),
        ("paymentRoutes", "payTo", None, ["0x1"], "also has 0x1"),
        ("paymentRoutes", "payTo", ["0x1"], ["0x1", "0x2"], "also has 0x2"),
        ("paymentRoutes", "payTo", ["0x1", "0x2"], ["0x1"], ""),
        ("paymentRoutes", "payTo", ["0x1"], None, "a rule of the agent names"),
        ("paymentRoutes", "priority", 5, None, "becomes nothing, where it was 5"),
        ("credentialRoutes", "injectAs", "header", "query", "becomes query"),
        ("oidcProviders", "tokenUrl", "https://a.example", "https://b.example", "becomes https://b.example"),
        ("oidcProviders", "issInResponse", True, False, "is off"),
        ("oidcProviders", "issInResponse", False, True, ""),
        ("webhooks", "url", "https://a.example", "https://b.example", "becomes https://b.example"),
        ("appClients", "allowedOrigins", ["https://a"], ["https://a", "https://b"], "also has https://b"),
        ("appClients", "allowedOrigins", ["https://a", "https://b"], ["https://a"], ""),
        ("saml", "wantAssertionsEncrypted", True, None, "is off"),
        ("oidcProviders", "allowJitProvisioning", None, True, "is on"),
        ("ssoDomains", "ssoRequired", True, None, "is off"),
        ("ssoDomains", "ssoRequired", None, True, ""),
        ("config", "approvalConfig", {"uncoveredEffects": "refuse"}, {}, "refuse becomes queue"),
        ("config", "approvalConfig", {}, {"uncoveredEffects": "refuse"}, ""),
        ("config", "approvalConfig", {}, {"autoExpireSeconds": 0}, "never expires"),
        ("config", "approvalConfig", {"autoExpireSeconds": 0}, {}, ""),
        ("config", "authAbuseConfig", {}, {"mfa": {"requireFor": {"tenantAdmin": False}}}, "no second factor"),
        ("config", "authAbuseConfig", {"mfa": {"disableFor": {"keyExport": True}}}, {}, "not forbidden any more"),
        ("config", "authAbuseConfig", {}, {"invitations": {"requireToken": False}}, "without the token"),
        ("config", "displayName", "A", "B", ""),
    ],
)
def test_a_changed_field_is_named_where_it_opens_something(section, field, before, after, words):
    found = looser_change(section, [Change(field, before, after)])

    assert (words in found[0]) if words else (found == [])


def test_a_thing_that_is_new_or_gone_is_named_where_it_opens_something():
    assert "the secret 'key' goes to a.example" in looser_new(
        "credentialRoutes", {"hostPattern": "a.example", "secret": "key"}
    )
    assert looser_new("credentialRoutes", {"hostPattern": "a.example", "secret": "key", "enabled": False}) == []
    assert looser_new("paymentRoutes", PAY) == ["what paid.example demands is paid, up to 5 of usd a call"]
    assert looser_without("ssoDomains", {"domain": "a.example", "ssoRequired": True})
    assert not looser_without("ssoDomains", {"domain": "a.example", "ssoRequired": False})


@each(
    ("gone", "other", "meets"),
    [
        ("api.example", "*.example", True),
        ("*.example", "api.example", True),
        ("api.example:8443", "API.example", True),
        ("api-*.example", "*.example", True),
        ("api.example", "api.example", True),
        ("api.example", "*", True),
        ("api.example", "other.example", False),
        ("api.example", "*.other", False),
    ],
)
def test_a_route_that_goes_leaves_its_requests_to_others_of_its_hosts(gone, other, meets):
    below = {**PAY, "hostPattern": other}
    found = looser_below("paymentRoutes", {**PAY, "hostPattern": gone}, [below])

    assert found == ([f"its requests may fall to the route for {other}"] if meets else [])
    assert looser_below("paymentRoutes", {**PAY, "hostPattern": gone, "enabled": False}, [below]) == []
    assert looser_below("paymentRoutes", {**PAY, "hostPattern": gone}, [{**below, "enabled": False}]) == []


def plan(wanted, *, prune=False, **present):
    found = State(
        {section: [Item(f"id-{place}", one) for place, one in enumerate(of)] for section, of in present.items()}
    )
    return plan_of(wanted, found, Who("acme", is_person=True, role="owner"), prune=prune)


NARROW = {**PAY, "hostPattern": "api.example", "priority": 9}
WIDE = {**PAY, "hostPattern": "*.example", "maxPerCall": {"usd": "5000"}}


@each(
    ("wanted", "prune", "looser"),
    [
        ([WIDE], True, True),
        ([WIDE], False, False),
        ([{**NARROW, "enabled": False}, WIDE], False, True),
        ([{**NARROW, "enabled": False}], False, True),
        ([{**NARROW, "enabled": False}], True, False),
        ([{**NARROW, "agents": ["one"]}, WIDE], False, True),
        ([NARROW, WIDE], False, False),
    ],
)
def test_a_plan_names_a_wider_route_below_one_that_goes_is_disabled_or_is_for_fewer(wanted, prune, looser):
    made = plan({"paymentRoutes": wanted}, prune=prune, paymentRoutes=[NARROW, WIDE])

    assert any("may fall to the route for *.example" in said for step in made.steps for said in step.looser) == looser


def test_a_new_agent_whose_rules_are_all_disabled_is_one_without_rules():
    rule = {"type": "rate-limit", "config": {"maxTxPerDay": 1}}
    said = []
    for rules in ([rule], [{**rule, "enabled": False}], []):
        [step] = plan({"agents": [{"id": "a", "name": "A", "policies": rules}]}).steps
        said.append(bool(step.looser))

    assert said == [False, True, True]
