"""Every event of an agent's orders arrives with its data, at who subscribed to it, and no other."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from tests.fixtures.callers import ADDRESS, rule
from tests.fixtures.hooked import Hooked, Hooks, new_hooks

OTHER = "0x" + "33" * 20
LIMIT = rule("spending-limit", maxPerDay="100", maxPerWeek="1000", alertPercents=[50, 80])
EVENTS = ("tx.pending", "tx.approved", "tx.denied", "tx.signed", "spend.threshold", "policy.violation")


class Told(msgspec.Struct):
    """Transactions by what became of them, and the envelopes that arrived, by event."""

    hooks: Any
    tx: dict[str, str]
    approvals: dict[str, str]
    envelopes: dict[str, list[dict[str, Any]]]
    subscribed: list[str]

    def one(self, event: str, tx: str) -> dict[str, Any]:
        """The only envelope of an event about a transaction, and nothing of it is unknown."""
        [found] = [one for one in self.envelopes[event] if one["data"]["txId"] == self.tx[tx]]
        assert list(found) == ["id", "event", "tenantId", "agentId", "timestamp", "data"]
        assert (found["tenantId"], found["agentId"]) == (self.hooks.tenant.id, self.hooks.agent.id)
        return found["data"]  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def notices(hook_world: Hooked) -> Iterator[Told]:
    """One agent's orders: three signed below the threshold, one approved, one denied, three refused."""
    with new_hooks(hook_world) as hooks:
        rules = [
            LIMIT,
            rule("auto-approve-threshold", threshold="42"),
            rule("approved-addresses", addresses=[ADDRESS]),
        ]
        hooks.tenant.ok("PUT", f"/agents/{hooks.agent.id}/policies", rules)
        everything, some = hooks.endpoint(), hooks.endpoint(events=["tx.denied", "spend.threshold"])
        with hook_world.scheduler():
            tx = {name: _order(hooks, value) for name, value in {"small": 40, "crossing": 15, "after": 1}.items()}
            tx |= {name: _order(hooks, value) for name, value in {"approved": 43, "denied": 44}.items()}
            approvals = {item["txId"]: item for item in hooks.tenant.ok("GET", "/approvals")}
            for name, body in {"denied": {"reason": "not today"}, "approved": {"comment": "fine"}}.items():
                item = approvals[tx[name]]
                verb = "deny" if name == "denied" else "approve"
                hooks.tenant.ok("POST", f"/approvals/{item['id']}/{verb}", {"digest": item["digest"], **body})
            tx |= {f"refused {n}": _order(hooks, 1, to=OTHER) for n in range(3)}
            hooks.ended_deliveries(everything, 12), hooks.ended_deliveries(some, 3)
        heard = [one.envelope for one in hooks.receivers.at(everything)]
        envelopes = {event: [one for one in heard if one["event"] == event] for event in EVENTS}
        ids = {name: approvals[tx[name]]["id"] for name in ("approved", "denied")}
        yield Told(hooks, tx, ids, envelopes, [one.envelope["event"] for one in hooks.receivers.at(some)])


def _order(hooks: Hooks, value: int, to: str = ADDRESS) -> str:
    return str(hooks.agent.sign(to, value, referenceId=f"of-{value}").json()["data"]["txId"])


def order(told: Told, tx: str, value: int) -> dict[str, Any]:
    """Make the fields that every event of an order has; the fee depends on the node."""
    record = told.hooks.agent.ok("GET", f"/vault/{told.hooks.agent.id}/transactions/{told.tx[tx]}")
    assert [one["kind"] for one in record["effects"]] == ["transfer", "fee"]
    return {
        "txId": told.tx[tx],
        "kind": "evm",
        "to": ADDRESS,
        "value": str(value),
        "chainId": 31337,
        "referenceId": f"of-{value}",
        "effects": record["effects"],
        "moreEffects": 0,
    }


def test_a_signature_is_published_once(notices: Told) -> None:
    small = notices.one("tx.signed", "small")

    assert small == {**order(notices, "small", 40), "txHash": small["txHash"], "broadcast": False}
    assert len(small["txHash"]) == 66
    assert {one["data"]["txId"] for one in notices.envelopes["tx.signed"]} == {
        notices.tx[name] for name in ("small", "crossing", "after", "approved")
    }


def test_a_pending_event_names_the_rule_that_demands_approval(notices: Told) -> None:
    pending = notices.one("tx.pending", "approved")

    expected = order(notices, "approved", 43) | {"approvalId": notices.approvals["approved"]}
    assert {name: pending[name] for name in expected} == expected
    assert set(pending) == {*expected, "policyResults", "releaseAt"}
    failed = [one for one in pending["policyResults"] if not one["passed"]]
    assert [one["type"] for one in failed] == ["auto-approve-threshold"]
    assert set(failed[0]) == {"policyId", "type", "passed", "reason"}


def test_a_decision_event_names_the_person(notices: Told) -> None:
    approved, denied = notices.one("tx.approved", "approved"), notices.one("tx.denied", "denied")

    assert approved == {
        **notices.one("tx.signed", "approved"),
        "approvalId": notices.approvals["approved"],
        "comment": "fine",
        "resolvedBy": "manual",
    }
    assert denied == {
        **order(notices, "denied", 44),
        "approvalId": notices.approvals["denied"],
        "reason": "not today",
        "resolvedBy": "manual",
    }


def test_a_share_of_a_limit_is_told_once_when_it_is_crossed(notices: Told) -> None:
    half, most = notices.one("spend.threshold", "crossing"), notices.one("spend.threshold", "approved")

    figures = {"window": "day", "asset": "evm:native", "limit": "100"}
    assert half == {**figures, "spent": "55", "percent": 50, "txId": notices.tx["crossing"]}
    assert most == {**figures, "spent": "99", "percent": 80, "txId": notices.tx["approved"]}
    # Not for what was signed between them, nor for the half a second time, nor for the week.
    assert len(notices.envelopes["spend.threshold"]) == 2


def test_refusals_of_one_rule_are_told_once_a_minute(notices: Told) -> None:
    [violation] = notices.envelopes["policy.violation"]

    data = notices.one("policy.violation", "refused 0")
    assert data is violation["data"]
    assert {name: data[name] for name in ("txId", "to", "value")} == {
        "txId": notices.tx["refused 0"],
        "to": OTHER,
        "value": "1",
    }
    assert [(one["type"], one["passed"]) for one in data["failedPolicies"]] == [("approved-addresses", False)]
    assert set(data) == {"txId", "to", "value", "failedPolicies"}


def test_an_endpoint_gets_only_the_events_it_subscribed_to(notices: Told) -> None:
    assert sorted(notices.subscribed) == ["spend.threshold", "spend.threshold", "tx.denied"]


def test_every_event_has_an_id_of_its_own(notices: Told) -> None:
    ids = [one["id"] for envelopes in notices.envelopes.values() for one in envelopes]

    assert len(set(ids)) == len(ids) == 11
