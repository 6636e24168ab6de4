"""Policy templates that come with the service. Amounts are in wei; what they do not limit goes to a person."""

from typing import Final

from custody.identity.theme import CustomizableField, PolicyTemplate, TemplateRule


def _amount(place: str, label: str, default: str) -> CustomizableField:
    return CustomizableField(path=f"policies{place}", label=label, type="amount", default=default, min="0")


_SMALL_PURCHASES = PolicyTemplate(
    id="small-purchases",
    name="Small purchases",
    description="An agent pays small amounts alone, a person decides on larger ones, and nothing exceeds the limit.",
    icon="cart",
    policies=(
        TemplateRule(
            id="limit",
            type="spending-limit",
            config={"maxPerTransaction": "50000000000000000", "maxPerDay": "200000000000000000"},
        ),
        TemplateRule(id="ask", type="auto-approve-threshold", config={"threshold": "20000000000000000"}),
        TemplateRule(id="pace", type="rate-limit", config={"maxTxPerHour": 10, "maxTxPerDay": 50}),
    ),
    customizable_fields=(
        _amount("[0].config.maxPerTransaction", "Most in one payment, in wei", "50000000000000000"),
        _amount("[0].config.maxPerDay", "Most in any 24 hours, in wei", "200000000000000000"),
        _amount("[1].config.threshold", "Most without a person, in wei", "20000000000000000"),
    ),
)
_KNOWN_RECIPIENTS = PolicyTemplate(
    id="known-recipients",
    name="Known recipients only",
    description="An agent pays the addresses that you list, within a limit, and nobody else.",
    icon="people",
    policies=(
        TemplateRule(id="recipients", type="approved-addresses", config={"mode": "whitelist", "addresses": []}),
        TemplateRule(
            id="limit",
            type="spending-limit",
            config={"maxPerDay": "1000000000000000000", "maxPerWeek": "5000000000000000000"},
        ),
    ),
    customizable_fields=(
        CustomizableField(path="policies[0].config.addresses", label="Addresses that may be paid", type="addresses"),
        _amount("[1].config.maxPerDay", "Most in any 24 hours, in wei", "1000000000000000000"),
        _amount("[1].config.maxPerWeek", "Most in any 7 days, in wei", "5000000000000000000"),
    ),
)
_ASK_FIRST = PolicyTemplate(
    id="ask-first",
    name="A person decides",
    description="Every payment waits for a person, and a limit holds even for what a person approves.",
    icon="hand",
    policies=(
        TemplateRule(id="ask", type="auto-approve-threshold", config={"threshold": "0"}),
        TemplateRule(id="limit", type="spending-limit", config={"maxPerDay": "1000000000000000000"}),
        TemplateRule(id="pace", type="rate-limit", config={"maxTxPerHour": 20}),
    ),
    customizable_fields=(_amount("[1].config.maxPerDay", "Most in any 24 hours, in wei", "1000000000000000000"),),
)
SHIPPED: Final = (_SMALL_PURCHASES, _KNOWN_RECIPIENTS, _ASK_FIRST)
