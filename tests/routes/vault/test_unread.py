"""Calldata that is not read to its end: asked over HTTP, counted where it is read, shown to who approves."""

from typing import Any

import pytest
from eth_abi import encode

from tests.fixtures.callers import Agent, Tenant, rule
from tests.routes.orders import CHAIN, TOKEN_CONTRACT, UNLIMITED

ASSET = f"evm:{CHAIN}:{TOKEN_CONTRACT}"
STRANGER = "0x" + "5e" * 20
TRANSFER, APPROVE, MULTICALL = "0xa9059cbb", "0x095ea7b3", "0xac9650d8"


def call(selector: str, who: str, amount: int) -> str:
    return selector + encode(["address", "uint256"], [who, amount]).hex()


def multicall(*inner: str) -> str:
    return MULTICALL + encode(["bytes[]"], [[bytes.fromhex(one.removeprefix("0x")) for one in inner]]).hex()


def listing_rule(*selectors: str, **more: Any) -> dict[str, Any]:
    return rule("contract-allowlist", contracts=[{"address": TOKEN_CONTRACT, "selectors": list(selectors), **more}])


LIMIT = rule("spending-limit", maxPerDay="1000", asset=ASSET)
BLOCKED = rule("approved-addresses", addresses=[STRANGER], mode="blacklist")
SENT = call(TRANSFER, STRANGER, 10**6)
WITHIN = call(TRANSFER, STRANGER, 5)


def status(agent: Agent, data: str, value: str = "0") -> int:
    order = {"to": TOKEN_CONTRACT, "value": value, "chainId": CHAIN, "broadcast": False, "data": data}
    return agent.post(f"/vault/{agent.id}/sign", json=order).status_code


@pytest.mark.parametrize(
    ("rules", "data", "value", "wanted"),
    [
        ([LIMIT, listing_rule(TRANSFER, APPROVE)], SENT, "0", 403),
        ([LIMIT, listing_rule(TRANSFER, APPROVE)], SENT + "00", "0", 403),
        ([LIMIT, listing_rule(TRANSFER, APPROVE)], WITHIN + "00", "0", 202),
        ([LIMIT, listing_rule(TRANSFER, APPROVE, unread="allow")], WITHIN + "00", "0", 202),
        ([LIMIT, listing_rule(TRANSFER, APPROVE)], call(APPROVE, STRANGER, UNLIMITED) + "00", "0", 202),
        ([LIMIT, listing_rule(TRANSFER)], SENT, "1", 403),
        ([LIMIT, listing_rule(TRANSFER)], SENT[:10] + "01" + SENT[12:], "0", 403),
        ([LIMIT, listing_rule("0xdeadbeef")], "0xdeadbeef", "0", 202),
        ([BLOCKED], WITHIN, "0", 403),
        ([BLOCKED], WITHIN + "00", "0", 403),
        ([BLOCKED], "0xdeadbeef", "0", 202),
        ([BLOCKED], multicall(WITHIN), "0", 403),
        ([listing_rule(TRANSFER, MULTICALL)], multicall(WITHIN), "0", 200),
        ([listing_rule(TRANSFER, MULTICALL)], multicall(WITHIN, "0x12345678"), "0", 403),
        ([listing_rule(TRANSFER, MULTICALL)], multicall("0x12345678"), "0", 403),
        ([listing_rule(TRANSFER, MULTICALL)], multicall(WITHIN + "00"), "0", 202),
        ([listing_rule(TRANSFER, MULTICALL)], multicall(WITHIN)[:-2], "0", 403),
        ([listing_rule(TRANSFER, unread="allow")], WITHIN + "00", "0", 200),
    ],
)
def test_nothing_unread_passes_a_rule_that_it_may_touch(
    tenant: Tenant, rules: list[dict[str, Any]], data: str, value: str, wanted: int
) -> None:
    assert status(tenant.agent(*rules), data, value) == wanted


def test_a_transfer_with_a_suffix_is_shown_and_counted_as_the_transfer_that_it_is(tenant: Tenant) -> None:
    agent = tenant.agent(LIMIT)
    order = {"to": TOKEN_CONTRACT, "value": "0", "chainId": CHAIN, "broadcast": False, "data": WITHIN + "c0ffee"}
    waiting = agent.post(f"/vault/{agent.id}/sign", json=order).json()["data"]

    item = tenant.ok("GET", f"/approvals/{waiting['approvalId']}")
    effects = [(one["kind"], one["asset"], one["amount"], one["to"], one.get("size")) for one in item["effects"][:2]]

    assert effects == [("transfer", ASSET, "5", STRANGER, None), ("unread", None, "0", TOKEN_CONTRACT.lower(), 3)]
    assert item["effects"][1]["label"] == "behind the arguments"
    tenant.ok("POST", f"/approvals/{waiting['approvalId']}/approve")
    assert status(agent, call(TRANSFER, STRANGER, 996)) == 403
    assert status(agent, call(TRANSFER, STRANGER, 995)) == 200


def test_a_setting_lets_pass_what_no_rule_is_about_and_nothing_else(tenant: Tenant) -> None:
    tenant.ok("PUT", f"/tenants/{tenant.id}/config", {"approvalConfig": {"uncoveredEffects": "allow"}})
    try:
        assert status(tenant.agent(rule("spending-limit", maxPerDay="1000")), "0xdeadbeef") == 200
        for rules in ([LIMIT], [BLOCKED], [listing_rule("0xdeadbeef")], [LIMIT, listing_rule("0xdeadbeef")]):
            assert status(tenant.agent(*rules), "0xdeadbeef") == 202
    finally:
        tenant.ok("PUT", f"/tenants/{tenant.id}/config", {"approvalConfig": {"uncoveredEffects": "queue"}})
