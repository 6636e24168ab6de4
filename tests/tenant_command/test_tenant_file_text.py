"""A tenant's file as text: what it may say, what is refused with its line, and that its shape is the contract's."""

import tempfile
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenant_command.event_names import EVENTS
from tenant_command.files import MAX_FILE_BYTES, MAX_FILE_DEPTH, BadFile, read_text
from tenant_command.kinds import Kind, ListOf, MapOf, Maybe, Of, Place, Record, Text, Variants
from tenant_command.tenant_file import shape
from tenant_command.tenant_file.reading import read_tenant_file
from tenant_command.tenant_file.rule_shape import CONFIGS
from tenant_command.yaml_text import yaml_text
from tests.fixtures.each import each

CONTRACT = msgspec.json.decode((Path(__file__).parents[2] / "openapi.json").read_bytes())["components"]["schemas"]
HEAD = "version: 1\n"
AGENT = "agents:\n  - id: a\n    name: A\n"


def read(text: str | bytes, tmp_path: Path) -> dict:
    file = tmp_path / "tenant.yaml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_tenant_file(str(file))


def limit(amount: str) -> str:
    config = f"{{maxPerDay: {amount}}}"
    return f"{HEAD}{AGENT}    policies:\n      - type: spending-limit\n        config: {config}\n"


REFUSED = [
    ("", "is empty"),
    ("# nothing\n", "is empty"),
    ("agents: []", "line 1: this lacks the field `version`"),
    ("version: 2", "is of version 2"),
    ("version: '1'", "line 1: version is `1`: write a whole number"),
    (HEAD + "agent: []", "line 2: this has no field `agent`; did you mean `agents`"),
    (HEAD + "agents: {}", "line 2: agents is no list"),
    (HEAD + AGENT + "    nmae: B", "line 5: agents[0] has no field `nmae`; did you mean `name`"),
    (HEAD + "agents:\n  - id: a", "line 3: agents[0] lacks the field `name`"),
    (HEAD + AGENT + "    name: B", "line 5: this has the field `name` for the second time"),
    (HEAD + AGENT + "  - id: a\n    name: B", "line 5: agents[1] has the same `id` as agents[0]"),
    (HEAD + "agents: &all []", "line 2: this has an anchor"),
    (HEAD + "agents: *all", "line 2: this has an anchor or alias"),
    (HEAD + "agents:\n  - <<: {id: a}\n    name: A", "line 3: this merges other fields"),
    (HEAD + "agents: !!seq []", "line 2: this has a tag"),
    ("%YAML 1.1\n---\nversion: 1", "has a directive"),
    (HEAD + "---\nversion: 1", "begins a second document"),
    (HEAD + "agents: [", "neither YAML nor JSON"),
    (HEAD + "webhooks:\n  - url: https://a.example\n    enabled: yes", "enabled is `yes`: write true or false"),
    (HEAD + "webhooks:\n  - url: https://a.example\n    maxRetries: 0x5", "maxRetries is `0x5`: write a whole number"),
    (HEAD + "webhooks:\n  - url: https://a.example\n    maxRetries: 5.0", "maxRetries is `5.0`"),
    (HEAD + "agents:\n  - id: a\n    name: ~", "agents[0].name has no value"),
    (limit("1e3"), "line 7: agents[0].policies[0].config.maxPerDay is `1e3`: write the amount in digits"),
    (limit("0x10"), "is `0x10`"),
    (limit("007"), "is `007`"),
    (limit("1_000"), "is `1_000`"),
    (limit("1.0"), "is `1.0`"),
    (limit("-1"), "is `-1`"),
    (limit("5").replace("maxPerDay", "maxPerDy"), "has no field `maxPerDy`; did you mean `maxPerDay`"),
    (limit("5").replace("spending-limit", "spend-limit"), "the type `spend-limit`, which is not known; did you mean"),
    (HEAD + "secrets:\n  - name: a\n    value: sk-live-1", "secrets[0].value has no fields"),
    (HEAD + "secrets:\n  - name: a\n    value: {env: A, file: b}", "one of them"),
    (HEAD + "secrets:\n  - name: a\n    value: {file: ../key}", "a file beside this one"),
    (HEAD + "secrets:\n  - name: a\n    value: {file: keys/../../key}", "a file beside this one"),
    (HEAD + "secrets:\n  - name: a\n    value: {file: /etc/hostname}", "a file beside this one"),
    (HEAD + "config: {featureFlags: {a: 1}}", "config.featureFlags.a is `1`: write true or false"),
    (
        HEAD + "config:\n  policyTemplates:\n  - {id: a, name: A, policies: [{type: x, config: {a: 2026-01-01}}]}",
        "quotes",
    ),
    (b"version: \xff", "is no UTF-8 text"),
    ('{"version": "\\ud800"}', "half of a character"),
    (b"#" * (MAX_FILE_BYTES + 1), "is larger than 1 MiB"),
    ("[" * 200_000, f"is deeper than {MAX_FILE_DEPTH} levels"),
    (HEAD + "agents: [" + "a," * 60_000 + "]", "is more than the 50,000 values"),
]


@each(("text", "complaint"), REFUSED, ids=[complaint for _, complaint in REFUSED])
def test_a_file_that_could_be_read_in_two_ways_is_refused_with_its_line(tmp_path_factory, text, complaint):
    with pytest.raises(BadFile) as caught:
        read(text, tmp_path_factory.mktemp("file"))

    assert complaint in caught.value.sentence


def test_a_text_is_exactly_what_stands_there(tmp_path):
    names = ["NO", "yes", "007", "1e3", "0x10", "1_000", "2026-01-01", "12:30:45", ".inf", "true", "1.10", "a: b"]
    lines = [f"  - id: {'x' * number}y\n    name: {name}" for number, name in enumerate(names[:-1])]
    found = read(HEAD + "agents:\n" + "\n".join(lines) + '\n  - {"id": "last", "name": "a: b"}\n', tmp_path)

    assert [agent["name"] for agent in found["agents"]] == names


def test_an_amount_of_any_size_is_read_to_the_last_digit(tmp_path):
    most = str(2**256 - 1)

    assert read(limit(most), tmp_path)["agents"][0]["policies"][0]["config"] == {"maxPerDay": most}


def test_json_is_read_too(tmp_path):
    data = {"version": 1, "agents": [{"id": "a", "name": 'A "b" \\ \n \U0001f600 \u00e9', "platformId": None}]}

    assert read(msgspec.json.encode(data), tmp_path) == data


def test_a_file_that_is_not_there_says_so(tmp_path):
    with pytest.raises(BadFile, match="cannot be read: No such file"):
        read_tenant_file(str(tmp_path / "none.yaml"))


TEXTS = st.text(st.characters(exclude_categories=("Cs",)), max_size=20) | st.sampled_from(
    ("yes", "NO", "null", "~", "", " a", "a ", "1", "0x1", "1e3", "- a", "a: b", "#", "*", "&a", "<<", "\u202e", "\x85")
)


@given(st.recursive(TEXTS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3)))
def test_data_that_is_written_is_read_back_the_same(data):
    text = yaml_text({"data": data}, "A heading")
    kind = MapOf(_Anything())

    assert kind.take(read_text(text.encode(), "a file"), Place("a file")) == {"data": data}
    assert text.replace("\n", "").isprintable()


class _Anything(Kind):
    def take(self, node, place):
        return {"Scalar": Text(), "Items": ListOf(self), "Fields": MapOf(self)}[type(node).__name__].take(node, place)


# ---- the shape is the contract's

RENAMED = {"secretId": "secret", "platformSecretId": "platformSecret"}
# The file's record, what is sent to make one, and fields of the latter that stand elsewhere in a file.
MADE_OF = [
    (shape.AGENT, ("NewAgentBody", "AgentChangeBody"), {"policies"}),
    (shape.POLICY_SET, ("PolicySetBody",), set()),
    (shape.SECRET, ("NewSecretBody",), set()),
    (shape.CREDENTIAL_ROUTE, ("NewCredentialRouteBody",), set()),
    (shape.PAYMENT_ROUTE, ("NewPaymentRouteBody",), set()),
    (shape.WEBHOOK, ("NewWebhookBody", "WebhookChangeBody"), set()),
    (shape.APP_CLIENT, ("AppClient",), set()),
    (shape.SAML, ("SamlConfig",), set()),
    (shape.OIDC_PROVIDER, ("OidcProviderBody",), set()),
    (shape.SSO_DOMAIN, ("SsoDomainBody",), set()),
    (shape.CONFIG, ("TenantConfigBody",), {"tenantId", "appClients"}),
]


def fields_of(names: tuple[str, ...]) -> dict[str, dict]:
    return {RENAMED.get(name, name): said for one in names for name, said in CONTRACT[one]["properties"].items()}


@each(("record", "names", "apart"), MADE_OF, ids=[names[0] for _, names, _ in MADE_OF])
def test_the_fields_of_a_section_are_those_of_the_contract(record, names, apart):
    compare(record, fields_of(names), apart)


@each("kind", list(CONFIGS))
def test_the_fields_of_a_rule_are_those_of_the_contract(kind):
    [schema] = [one for one in CONTRACT.values() if one.get("properties", {}).get("type", {}).get("const") == kind]
    config = CONTRACT[schema["properties"]["config"]["$ref"].rpartition("/")[2]]["properties"]

    compare(Record({**CONFIGS[kind], "until": Of(Maybe(Text()), None)}), config, set())


def test_every_type_of_rule_and_every_event_is_known():
    types = {
        one["properties"]["type"].get("const") for one in CONTRACT.values() if "config" in one.get("properties", {})
    }
    events = fields_of(("NewWebhookBody",))["events"]["anyOf"][0]["items"]["enum"]

    assert types - {None} == set(CONFIGS)
    assert set(events) == set(EVENTS)


def compare(record: Record, contract: dict[str, dict], apart: set[str]) -> None:
    """Hold a record against a schema, and what is in it against what is in that."""
    assert set(record.fields) - apart == set(contract) - apart
    for name, field in record.fields.items():
        if name in apart:
            continue
        told = contract[name].get("description", "").rpartition("Default: `")[2].removesuffix("`.")
        if "Default: `" in contract[name].get("description", "") and not field.open:
            assert msgspec.json.decode(told) == field.default, name
        inner, schema = record_in(field.kind), schema_in(contract[name])
        if inner is not None and schema is not None:
            compare(inner, {RENAMED.get(one, one): said for one, said in schema.items()}, {"policies"})


def record_in(kind: Kind) -> Record | None:
    while isinstance(kind, ListOf | Maybe | MapOf):
        kind = kind.of
    return kind if isinstance(kind, Record) and not isinstance(kind, Variants) else None


def schema_in(schema: dict) -> dict | None:
    found = msgspec.json.encode(schema).decode().partition('"$ref":"#/components/schemas/')[2].partition('"')[0]
    return CONTRACT.get(found, {}).get("properties")


@each(
    "text",
    [
        HEAD + 'agents:\n  - {id: a, name: A, "\\e]0;owned\\a": b}',
        HEAD + 'webhooks:\n  - {url: https://a.example, maxRetries: "\\e[2J"}',
        HEAD + AGENT + '    policies:\n      - {type: "\\u009b2J\\u202e", config: {}}',
    ],
)
def test_a_refusal_of_a_file_writes_out_what_a_terminal_would_obey(text):
    with tempfile.TemporaryDirectory() as folder, pytest.raises(BadFile) as refused:
        read(text, Path(folder))

    assert refused.value.format_message().isprintable()
