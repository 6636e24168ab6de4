"""EIP-712 documents: signed as wallets sign them, judged as what they allow."""

from typing import Any

import msgspec
import pytest
from eth_account import Account
from eth_account.messages import encode_typed_data

from custody.chains.evm.typed_order import TypedDataOrder
from tests.fixtures.callers import Agent, Tenant, rule
from tests.routes.orders import CHAIN, SPENDER, TOKEN_CONTRACT, UNLIMITED, mail, note, permit
from tests.rules.chains.published_types import UNKNOWN, document
from tests.rules.chains.typed_samples import PERMIT2_DOMAIN, kind, sample, with_witness

ASSET = f"evm:{CHAIN}:{TOKEN_CONTRACT}"


def path(agent: Agent) -> str:
    return f"/vault/{agent.id}/sign-typed-data"


def recover(document: dict[str, Any], signature: str) -> str:
    message = encode_typed_data(document["domain"], document["types"] | {}, document["value"])
    return Account.recover_message(message, signature=signature)


def test_a_document_is_signed_as_wallets_sign_it(agent: Agent) -> None:
    document = note("Grüße")

    answer = agent.post(path(agent), json=document)

    data = answer.json()["data"]
    assert answer.status_code == 200
    assert set(data) == {"signature", "txId"}
    assert len(data["signature"]) == 132
    assert recover(document, data["signature"]) == agent.evm_address


def as_message(document: dict[str, Any]) -> dict[str, Any]:
    """The same document as eth_signTypedData_v4 writes it."""
    return {("message" if name == "value" else name): content for name, content in document.items()}


def test_message_is_another_name_for_value(agent: Agent) -> None:
    document = permit(agent.evm_address, 5)

    named, same = agent.ok("POST", path(agent), as_message(document)), agent.ok("POST", path(agent), document)

    assert named["signature"] == same["signature"]
    assert recover(document, named["signature"]) == agent.evm_address
    found = agent.ok("GET", f"/vault/{agent.id}/transactions/{named['txId']}")
    assert found["data"] == document


def test_message_is_judged_as_value_is(tenant: Tenant) -> None:
    agent = tenant.agent(rule("spending-limit", maxPerDay="100", asset=ASSET))
    order = as_message(permit(agent.evm_address, 101))

    simulated = agent.ok("POST", f"/vault/{agent.id}/simulate", {"kind": "typed_data", "request": order})

    assert simulated["decision"] == "refuse"
    assert agent.post(path(agent), json=order).status_code == 403


def test_of_both_names_or_of_none_nothing_is_signed(agent: Agent) -> None:
    document = note()
    both = {**document, "message": document["value"]}
    neither = {name: content for name, content in document.items() if name != "value"}

    for body, sentence in (
        (both, "message and value are two names of one field; send one."),
        (neither, "message is missing; it must be the struct to sign, an object."),
    ):
        for answer in (
            agent.post(path(agent), json=body),
            agent.post(f"/vault/{agent.id}/simulate", json={"kind": "typed_data", "request": body}),
        ):
            assert (answer.status_code, answer.json()["error"]) == (400, sentence)
            assert answer.json()["data"]["code"] == "bad_typed_data"


NUMBERS = {
    "domain": {"name": "Numbers", "chainId": CHAIN},
    "types": {
        "Numbers": [{"name": "small", "type": "uint8"}, {"name": "signed", "type": "int256[]"}],
    },
    "primaryType": "Numbers",
}


def test_whole_numbers_are_taken_as_far_as_json_is_exact(agent: Agent) -> None:
    numbers = {"small": 255, "signed": [-(2**53), 0, 2**53]}
    texts = {"small": "255", "signed": [str(-(2**53)), "0x0", str(2**53)]}

    signatures = [
        agent.ok("POST", path(agent), {**NUMBERS, "message": message})["signature"] for message in (numbers, texts)
    ]

    assert len(set(signatures)) == 1
    assert recover({**NUMBERS, "value": numbers}, signatures[0]) == agent.evm_address


@pytest.mark.parametrize("number", [2**53 + 1, -(2**53) - 1, 10**18])
def test_a_number_that_programs_round_is_asked_for_as_text(agent: Agent, number: int) -> None:
    answer = agent.post(path(agent), json={**NUMBERS, "message": {"small": 1, "signed": [number]}})

    assert answer.status_code == 400
    assert answer.json()["error"].endswith(f'send it as a string, "{number}".')


def test_the_record_shows_the_document_and_the_signature(agent: Agent) -> None:
    document = note()
    signed = agent.ok("POST", path(agent), {**document, "referenceId": "n-1"})

    found = agent.ok("GET", f"/vault/{agent.id}/transactions/{signed['txId']}")

    assert (found["kind"], found["status"], found["signature"]) == ("typed_data", "signed", signed["signature"])
    assert found["data"] == document
    assert (found["txHash"], found["nonce"], found["value"], found["referenceId"]) == (None, None, None, "n-1")


def test_a_permit_counts_as_spend_of_its_amount(tenant: Tenant) -> None:
    agent = tenant.agent(rule("spending-limit", maxPerDay="100", asset=ASSET))

    statuses = [agent.post(path(agent), json=permit(agent.evm_address, value)).status_code for value in (60, 50, 40, 0)]

    assert statuses == [200, 403, 200, 200]
    assert agent.ok("GET", f"/dashboard/{agent.id}")["budgets"][0]["spent"] == "100"


def test_an_unlimited_permit_waits_for_a_person_where_limits_exist(tenant: Tenant) -> None:
    free = tenant.agent()
    limited = tenant.agent(rule("spending-limit", maxPerDay=str(UNLIMITED), asset=ASSET))

    assert free.post(path(free), json=permit(free.evm_address, UNLIMITED)).status_code == 200
    answer = limited.post(path(limited), json=permit(limited.evm_address, UNLIMITED))

    assert answer.status_code == 202, answer.text
    assert answer.json()["data"]["results"][-1]["type"] == "uncovered-effect"
    effect = tenant.ok("GET", "/approvals")[0]["effects"][0]
    assert (effect["kind"], effect["unlimited"], effect["spender"]) == ("approval", True, SPENDER)


LIMITS = {
    "an address rule": [rule("approved-addresses", addresses=["0x" + "77" * 20])],
    "a limit": [rule("spending-limit", maxPerDay="0")],
    "a threshold": [rule("auto-approve-threshold", threshold="0")],
}
DOMAIN = {"name": "Published", "version": "1", "chainId": CHAIN, "verifyingContract": "0x" + "2c" * 20}


@pytest.mark.parametrize("rules", LIMITS.values(), ids=LIMITS)
def test_published_types_that_no_list_names_wait_for_a_person_where_spend_or_addresses_are_limited(
    tenant: Tenant, rules: list[dict[str, Any]]
) -> None:
    agent = tenant.agent(*rules)

    answers = {name: agent.post(path(agent), json=document(name, DOMAIN)) for name in UNKNOWN}
    answers["without a domain"] = agent.post(path(agent), json=document("SafeOp", {}))

    assert {name: answer.status_code for name, answer in answers.items()} == dict.fromkeys(answers, 202)
    last = [answer.json()["data"]["results"][-1] for answer in answers.values()]
    assert {one["type"] for one in last} == {"uncovered-effect"}
    assert agent.post(path(agent), json=mail()).status_code == 200


def test_a_person_is_shown_that_the_kind_is_unknown_and_may_approve_it(tenant: Tenant) -> None:
    agent = tenant.agent(*LIMITS["an address rule"])
    agent.post(path(agent), json=document("SafeOp", DOMAIN))

    (item,) = tenant.ok("GET", "/approvals")
    assert [(one["kind"], one["unknown"], one["label"]) for one in item["effects"]] == [("unread", True, "SafeOp")]
    tenant.ok("POST", f"/approvals/{item['id']}/approve", {"digest": item["digest"]})
    assert agent.ok("GET", f"/vault/{agent.id}/history")[0]["status"] == "signed"


def test_a_listed_contract_vouches_for_typed_data_of_an_unknown_kind(tenant: Tenant) -> None:
    listed = {"address": DOMAIN["verifyingContract"], "chainId": CHAIN, "selectors": ["0xa1903eab"]}
    agent = tenant.agent(*LIMITS["a limit"], rule("contract-allowlist", contracts=[listed | {"unread": "allow"}]))
    asked = tenant.agent(*LIMITS["a limit"], rule("contract-allowlist", contracts=[listed]))
    elsewhere = {**DOMAIN, "verifyingContract": SPENDER}

    statuses = [agent.post(path(agent), json=document("SafeOp", domain)).status_code for domain in (DOMAIN, elsewhere)]

    assert statuses == [200, 403]
    assert asked.post(path(asked), json=document("SafeOp", DOMAIN)).status_code == 202


def test_a_permit_is_judged_by_its_spender(tenant: Tenant) -> None:
    listed = tenant.agent(rule("approved-addresses", addresses=[SPENDER]))
    unlisted = tenant.agent(rule("approved-addresses", addresses=["0x" + "77" * 20]))

    assert listed.post(path(listed), json=permit(listed.evm_address, 1)).status_code == 200
    assert unlisted.post(path(unlisted), json=permit(unlisted.evm_address, 1)).status_code == 403


def test_a_chain_is_checked_and_a_missing_one_fails_an_allowed_chains_rule(tenant: Tenant) -> None:
    agent = tenant.agent(rule("allowed-chains", chains=[CHAIN]))
    elsewhere, nowhere = note(), note()
    elsewhere["domain"] = {"name": "Notes", "chainId": 1}
    nowhere["domain"] = {"name": "Notes"}

    statuses = [agent.post(path(agent), json=one).status_code for one in (note(), elsewhere, nowhere)]

    assert statuses == [200, 403, 403]


def test_a_domain_may_be_empty(agent: Agent) -> None:
    assert agent.post(path(agent), json={**note(), "domain": {}}).status_code == 200


MALFORMED: dict[str, dict[str, Any]] = {
    "no primary type": {"primaryType": "Other"},
    "a value is missing": {"value": {}},
    "a value of another type": {"value": {"text": 5}},
    "an unknown domain field": {"domain": {"surplus": "x"}},
    "a domain that is no object": {"domain": []},
    "a chain that fits no number": {"domain": {"chainId": str(2**256)}},
    "a chain with a fraction": {"domain": {"chainId": 1.5}},
    "a contract that is no address": {"domain": {"verifyingContract": "0x1"}},
    "a declared domain that says something else": {
        "types": {"EIP712Domain": [{"name": "name", "type": "uint256"}], "Note": [{"name": "text", "type": "string"}]},
    },
    "an unknown field type": {"types": {"Note": [{"name": "text", "type": "strin"}]}},
    "a name that would spell another type": {
        "types": {"Note(a": [{"name": "text", "type": "string"}]},
        "primaryType": "Note(a",
    },
    "a field twice": {"types": {"Note": [{"name": "text", "type": "string"}, {"name": "text", "type": "string"}]}},
    "a type without fields": {"types": {"Note": []}},
    "types that are no object": {"types": []},
    "a field with more": {"types": {"Note": [{"name": "text", "type": "string", "x": 1}]}},
    "a type within itself": {"types": {"Note": [{"name": "text", "type": "Note"}]}, "value": {"text": {}}},
    "a hash to sign": {"types": {"Note": [{"name": "text", "type": "bytes32"}]}, "value": {"text": "0x12"}},
}


@pytest.mark.parametrize("changed", MALFORMED.values(), ids=MALFORMED)
def test_a_malformed_document_is_400_without_a_record(agent: Agent, changed: dict[str, Any]) -> None:
    answer = agent.post(path(agent), json={**note(), **changed})

    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]
    assert agent.ok("GET", f"/vault/{agent.id}/history") == []


def test_a_document_over_64_kib_is_400(agent: Agent) -> None:
    assert agent.post(path(agent), json=note("x" * 65_536)).status_code == 400
    assert agent.post(path(agent), json=note("x" * 60_000)).status_code == 200


@pytest.mark.parametrize("text", ["a\u0000b", "\u2028", "🦊", "\\", '"', "</script>"], ids=repr)
def test_any_text_can_be_signed_and_read_back(agent: Agent, text: str) -> None:
    signed = agent.ok("POST", path(agent), note(text))

    assert recover(note(text), signed["signature"]) == agent.evm_address
    assert agent.ok("GET", f"/vault/{agent.id}/history?include=data")[0]["data"]["value"]["text"] == text


def test_typed_data_takes_no_nonce(agent: Agent) -> None:
    agent.ok("POST", path(agent), note())

    assert agent.ok("GET", f"/vault/{agent.id}/transactions/{agent.sign().json()['data']['txId']}")["nonce"] == 0


def test_types_of_each_other_are_signed(agent: Agent) -> None:
    types = {
        "Tree": [{"name": "leaves", "type": "Leaf[]"}],
        "Leaf": [{"name": "trees", "type": "Tree[]"}],
    }
    given = {"domain": {"name": "t"}, "types": types, "primaryType": "Tree", "value": {"leaves": [{"trees": []}]}}

    assert agent.post(path(agent), json=given).status_code == 200


def blocking_rule(address: str) -> dict[str, Any]:
    return rule("approved-addresses", addresses=[address], mode="blacklist")


# ---- documents as exchanges and sites write them

ZERO = "0x" + "00" * 20
DOMAIN_TYPE = [
    {"name": "name", "type": "string"},
    {"name": "version", "type": "string"},
    {"name": "chainId", "type": "uint256"},
    {"name": "verifyingContract", "type": "address"},
]
_SEND = [("hyperliquidChain", "string"), ("destination", "string"), ("amount", "string"), ("time", "uint64")]
EXCHANGE: dict[str, dict[str, Any]] = {
    "an order": {
        "domain": {"name": "Exchange", "version": "1", "chainId": 1337, "verifyingContract": ZERO},
        "types": {"Agent": [{"name": "source", "type": "string"}, {"name": "connectionId", "type": "bytes32"}]},
        "primaryType": "Agent",
        "message": {"source": "a", "connectionId": "0x" + "22" * 32},
    },
    "a withdrawal": {
        "domain": {"name": "HyperliquidSignTransaction", "version": "1", "chainId": 421614, "verifyingContract": ZERO},
        "types": {"HyperliquidTransaction:Withdraw": [{"name": name, "type": kind} for name, kind in _SEND]},
        "primaryType": "HyperliquidTransaction:Withdraw",
        "message": {"hyperliquidChain": "Mainnet", "destination": SPENDER, "amount": "5", "time": 1_700_000_000_000},
    },
}


@pytest.mark.parametrize("name", EXCHANGE)
@pytest.mark.parametrize("declared", [True, False], ids=["declared", "not declared"])
def test_a_document_of_an_exchange_at_no_contract_is_signed_as_it_is(agent: Agent, name: str, declared: bool) -> None:
    given = EXCHANGE[name]
    types = {"EIP712Domain": DOMAIN_TYPE, **given["types"]}

    answer = agent.post(path(agent), json=given | ({"types": types} if declared else {}))

    assert answer.status_code == 200, answer.text
    message = encode_typed_data(full_message=given | {"types": types})
    assert Account.recover_message(message, signature=answer.json()["data"]["signature"]) == agent.evm_address


def test_a_domain_of_fewer_fields_than_are_given_is_signed_as_declared(agent: Agent) -> None:
    declared = {"EIP712Domain": [{"name": "name", "type": "string"}], **note()["types"]}
    full = note()["domain"] | {"name": "Notes", "verifyingContract": SPENDER}

    signed = agent.ok("POST", path(agent), note() | {"domain": full, "types": declared})

    assert recover(note() | {"domain": {"name": "Notes"}}, signed["signature"]) == agent.evm_address
    found = agent.ok("GET", f"/vault/{agent.id}/transactions/{signed['txId']}")
    assert (found["chainId"], found["toAddress"], found["data"]["domain"]) == (None, None, {"name": "Notes"})


def test_the_record_shows_nothing_that_is_not_signed(agent: Agent) -> None:
    spare = {"Spare": [{"name": "a", "type": "bool"}]}
    beyond = note() | {"types": note()["types"] | spare, "value": {"text": "hello", "refund": "all of it"}}

    signed = [agent.ok("POST", path(agent), document) for document in (note(), beyond)]

    assert signed[0]["signature"] == signed[1]["signature"]
    shown = [agent.ok("GET", f"/vault/{agent.id}/transactions/{one['txId']}")["data"] for one in signed]
    assert shown == [note(), note()]


@pytest.mark.parametrize("chain", [0, str(2**63), str(2**256 - 1)])
def test_a_chain_id_that_no_chain_has_is_signed_and_is_no_chain_for_rules(tenant: Tenant, chain: Any) -> None:
    free, limited = tenant.agent(), tenant.agent(rule("allowed-chains", chains=[CHAIN]))
    given = note() | {"domain": {"name": "Notes", "chainId": chain}}

    signed = free.ok("POST", path(free), given)

    assert (
        recover(note() | {"domain": {"name": "Notes", "chainId": int(chain)}}, signed["signature"]) == free.evm_address
    )
    assert free.ok("GET", f"/vault/{free.id}/transactions/{signed['txId']}")["chainId"] is None
    assert limited.post(path(limited), json=given).status_code == 403


@pytest.mark.parametrize("name", EXCHANGE)
@pytest.mark.parametrize("rules", LIMITS.values(), ids=LIMITS)
def test_a_document_of_an_exchange_waits_for_a_person_where_anything_is_limited(
    tenant: Tenant, name: str, rules: list[dict[str, Any]]
) -> None:
    agent = tenant.agent(
        *(one for one in rules if one["type"] != "approved-addresses"), blocking_rule("0x" + "77" * 20)
    )

    assert agent.post(path(agent), json=EXCHANGE[name]).status_code == 202


def test_a_blocked_address_receives_nothing_by_a_document_that_moves_value(tenant: Tenant) -> None:
    agent = tenant.agent(blocking_rule(SPENDER))
    domain = {"chainId": CHAIN, "verifyingContract": TOKEN_CONTRACT}
    safe = sample(kind("SafeTx"), domain, to=SPENDER, value="1000")

    answers = {
        "a withdrawal": agent.post(path(agent), json=EXCHANGE["a withdrawal"]),
        "coins of a Safe": agent.post(path(agent), json=body_of(safe)),
        "a revocation": agent.post(path(agent), json=permit(agent.evm_address, 0)),
        "an approval": agent.post(path(agent), json=permit(agent.evm_address, 1)),
    }

    statuses = {name: answer.status_code for name, answer in answers.items()}
    assert statuses == {"a withdrawal": 403, "coins of a Safe": 403, "a revocation": 200, "an approval": 403}


def body_of(order: TypedDataOrder) -> dict[str, Any]:
    given: dict[str, Any] = msgspec.to_builtins(order)
    given.pop("referenceId")
    return given


def test_a_payment_of_x402_by_permit2_counts_and_is_judged_by_whom_it_pays(tenant: Tenant) -> None:
    asset = f"evm:8453:{TOKEN_CONTRACT}"
    paid = {"to": SPENDER, "validAfter": 1}
    proxy = "0x402085c248EeA27D92E8b30b2C58ed07f9E20001"
    agent = tenant.agent(
        rule("spending-limit", maxPerDay="100", asset=asset), rule("approved-addresses", addresses=[SPENDER])
    )

    statuses = []
    for amount, to, spender in ((60, SPENDER, proxy), (50, SPENDER, proxy), (1, TOKEN_CONTRACT, proxy)):
        permitted = {"token": TOKEN_CONTRACT, "amount": amount}
        order = with_witness(
            "Witness(address to,uint256 validAfter)",
            domain=PERMIT2_DOMAIN,
            permitted=permitted,
            spender=spender,
            witness=paid | {"to": to},
        )
        statuses.append(agent.post(path(agent), json=body_of(order)).status_code)

    assert statuses == [200, 403, 403]
    assert agent.ok("GET", f"/dashboard/{agent.id}")["budgets"][0]["spent"] == "60"
