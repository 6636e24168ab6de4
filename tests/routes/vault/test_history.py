"""Orders of an agent: pending, history, search, one."""

import socket
from contextlib import ExitStack
from typing import Any

import pytest

from tests.fixtures.callers import ADDRESS, OTHER_ADDRESS, Agent, Tenant, rule
from tests.fixtures.eventually import eventually
from tests.fixtures.server import Service
from tests.outside.evm_node import EvmNode
from tests.routes.orders import mail


@pytest.fixture
def busy(tenant: Tenant, evm_node: EvmNode) -> Agent:
    """An agent with one order of each outcome: signed, refused, queued, typed data, broadcast; newest last."""
    agent = tenant.agent(
        rule("spending-limit", maxPerTransaction="100"), rule("auto-approve-threshold", threshold="10")
    )
    evm_node.fund(agent.evm_address)
    agent.sign(value=1, referenceId="first")
    agent.sign(value=101)
    agent.sign(value=50)
    agent.post(f"/vault/{agent.id}/sign-typed-data", json=mail())
    agent.sign(OTHER_ADDRESS, 2, broadcast=True)
    return agent


def find(agent: Agent, query: str) -> dict[str, Any]:
    return agent.ok("GET", f"/vault/{agent.id}/transactions?{query}")


def test_history_is_newest_first_and_counted(busy: Agent, tenant: Tenant) -> None:
    answer = busy.get(f"/vault/{busy.id}/history")

    rows = answer.json()["data"]
    assert [(row["kind"], row["status"]) for row in rows] == [
        ("evm", "broadcast"),
        ("typed_data", "signed"),
        ("evm", "pending_approval"),
        ("evm", "rejected"),
        ("evm", "signed"),
    ]
    assert answer.headers["X-Total-Count"] == "5"
    assert tenant.ok("GET", f"/vault/{busy.id}/history?limit=2&offset=1") == rows[1:3]


LONG = ("data", "signature", "signedTransaction")


@pytest.mark.parametrize("part", ["history", "transactions"])
def test_a_list_says_what_was_signed_only_when_asked(busy: Agent, part: str) -> None:
    """An order may carry 128 KiB of calldata, and its signed bytes as much again."""

    def rows(query: str) -> list[dict[str, Any]]:
        found = busy.ok("GET", f"/vault/{busy.id}/{part}?{query}")
        return found["transactions"] if part == "transactions" else found

    shown, included = rows(""), rows("include=data")

    assert not any(name in row for row in shown for name in LONG)
    assert [{**row, **{name: one[name] for name in LONG}} for row, one in zip(shown, included, strict=True)] == included
    assert included == [busy.ok("GET", f"/vault/{busy.id}/transactions/{row['txId']}") for row in shown]
    assert busy.get(f"/vault/{busy.id}/{part}?include=everything").status_code == 400


def test_a_page_with_data_ends_where_it_would_be_too_long_and_the_next_one_begins_there(tenant: Tenant) -> None:
    agent = tenant.agent()
    made = [agent.sign(data="0x" + "ab" * 131_000).json()["data"]["txId"] for _ in range(11)]
    path = f"/vault/{agent.id}/history?include=data"

    first = agent.get(path)
    rest = agent.ok("GET", f"{path}&offset={len(first.json()['data'])}")
    behind = agent.ok("GET", f"{path}&cursor={first.json()['nextCursor']}")

    assert first.headers["X-Total-Count"] == "11"
    # Each has about 512 KiB of hex: the calldata, and in the signed bytes once more.
    assert len(first.content) <= 4 * 1024 * 1024
    assert len(first.json()["data"]) == 7
    assert [row["txId"] for row in first.json()["data"] + rest] == made[::-1]
    assert behind == rest
    assert len(agent.get(f"/vault/{agent.id}/history").content) < 11 * 2048


def test_answers_that_nobody_reads_have_a_bound_for_each_tenant(
    service: Service, tenant: Tenant, other_tenant: Tenant
) -> None:
    """16 MiB: of four pages a tenant's clients may be slow to read, the fifth is refused, and others go on."""
    agents = [one.agent() for one in (tenant, other_tenant)]
    for agent in agents:
        assert all(agent.sign(data="0x" + "ab" * 131_000).status_code == 200 for _ in range(8))
    ask = f"GET /vault/{agents[0].id}/history?include=data HTTP/1.1\r\nHost: x\r\nX-Service-Key: {tenant.key}\r\n\r\n"

    with ExitStack() as open_:
        heard = [open_.enter_context(unread(service, ask.encode())).recv(4096) for _ in range(7)]

        assert [answer[9:12] for answer in heard] == [b"200"] * 4 + [b"429"] * 3
        assert b'"code":"too_much_held"' in heard[-1]
        # What is short, and what others ask for, is answered.
        assert tenant.get(f"/vault/{agents[0].id}/history").status_code == 200
        assert other_tenant.get(f"/vault/{agents[1].id}/history?include=data").status_code == 200
    # Once the slow ones are gone the room is free again; that they are is noticed with their connections' end.
    eventually(lambda: tenant.get(f"/vault/{agents[0].id}/history?include=data").status_code, 200)


def unread(service: Service, content: bytes) -> socket.socket:
    """A connection that has asked, and whose side takes only a little at a time."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.settimeout(60)
    connection.connect(("127.0.0.1", service.port))
    connection.sendall(content)
    return connection


def test_pending_has_the_orders_that_wait(busy: Agent, tenant: Tenant) -> None:
    answer = tenant.get(f"/vault/{busy.id}/pending")

    item = answer.json()["data"][0]
    assert answer.headers["X-Total-Count"] == "1"
    assert set(item) == {"queueId", "status", "requestedAt", "transaction"}
    assert item["queueId"] == tenant.ok("GET", "/approvals")[0]["id"]
    order = item["transaction"]
    assert set(order) == {"id", "toAddress", "value", "chainId", "policyResults"}
    assert (item["status"], order["toAddress"], order["value"], order["chainId"]) == ("pending", ADDRESS, "50", 31337)


def test_pending_is_empty_once_decided(busy: Agent, tenant: Tenant) -> None:
    tenant.ok("POST", f"/approvals/{tenant.ok('GET', '/approvals')[0]['id']}/deny", {})

    assert busy.ok("GET", f"/vault/{busy.id}/pending") == []


@pytest.mark.parametrize(
    ("query", "total"),
    [
        ("", 5),
        ("status=signed", 2),
        ("status=rejected", 1),
        ("status=failed", 0),
        ("kind=typed_data", 1),
        ("kind=bitcoin", 0),
        ("chainId=31337", 5),
        ("chainId=1", 0),
        ("referenceId=first", 1),
        ("referenceId=FIRST", 0),
        (f"toAddress={ADDRESS}", 3),
        (f"toAddress={OTHER_ADDRESS.upper().replace('X', 'x')}", 1),
        ("from=2000-01-01T00:00:00Z", 5),
        ("to=2000-01-01T00:00:00Z", 0),
        ("from=2000-01-01&to=2999-12-31T23:59:59.999%2B02:00", 5),
        ("from=2000-01-01&to=2000-01-01", 0),
        ("status=signed&kind=evm", 1),
        ("limit=1", 5),
        ("offset=5", 5),
    ],
)
def test_every_filter_narrows(busy: Agent, query: str, total: int) -> None:
    assert find(busy, query)["total"] == total


def test_an_order_is_found_by_its_hash_and_its_id(busy: Agent) -> None:
    newest = find(busy, "limit=1")["transactions"][0]

    by_hash, by_id = find(busy, f"txHash={newest['txHash']}"), find(busy, f"txId={newest['id']}")

    assert by_hash["transactions"] == by_id["transactions"] == [newest]


def test_a_page_says_which_it_is(busy: Agent) -> None:
    page = find(busy, "limit=2&offset=3")

    assert (page["limit"], page["offset"], page["total"], len(page["transactions"])) == (2, 3, 5, 2)
    assert (find(busy, "")["limit"], find(busy, "")["offset"]) == (50, 0)


@pytest.mark.parametrize(
    "query",
    [
        "limit=201",
        "limit=0",
        "offset=-1",
        "status=unknown",
        "kind=x",
        "chainId=x",
        "txId=x",
        "from=yesterday",
        "to=2000-13-01",
        "to=2001-02-29",
        "from=2000-01-01T00:00:00",
        "status=null",
        "kind=null",
        "chainId=None",
        "referenceId=",
        "from=2000-01-01T00:00:00Z&from=2001-01-01T00:00:00Z",
    ],
)
def test_a_malformed_filter_is_400(busy: Agent, query: str) -> None:
    assert busy.get(f"/vault/{busy.id}/transactions?{query}").status_code == 400


def test_a_day_is_the_whole_day_and_the_time_that_a_row_shows_finds_it(busy: Agent) -> None:
    newest = find(busy, "limit=1")["transactions"][0]
    shown, today = newest["createdAt"], newest["createdAt"][:10]

    assert newest in find(busy, f"from={shown}&to={shown}")["transactions"]
    assert newest in find(busy, f"from={today}&to={today}")["transactions"]


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        (
            "from=yesterday",
            "from must be a date and time with a zone, such as 2026-01-31T12:00:00Z, or a date, such as",
        ),
        ("to=2001-02-29", "to must be a date and time with a zone"),
        ("status=null", "leave status out if you mean none."),
        ("to=", "leave to out if you mean none."),
        ("cursor=null", "cursor must be nextCursor of the page before, unchanged; leave cursor out if you mean none."),
    ],
)
def test_the_sentence_names_the_cure(busy: Agent, query: str, sentence: str) -> None:
    answer = busy.get(f"/vault/{busy.id}/transactions?{query}").json()

    assert sentence in answer["error"]
    assert answer["data"]["fields"] == [query.partition("=")[0]]


def test_an_absent_transaction_is_404_and_so_is_another_agents(busy: Agent, tenant: Tenant) -> None:
    other = tenant.agent()
    absent = "00000000-0000-4000-8000-000000000000"
    theirs = find(busy, "limit=1")["transactions"][0]["id"]

    answers = [tenant.get(f"/vault/{other.id}/transactions/{tx_id}") for tx_id in (absent, theirs)]

    assert [(answer.status_code, answer.json()["data"]["code"]) for answer in answers] == [
        (404, "transaction_absent")
    ] * 2


@pytest.mark.parametrize("part", ["pending", "history", "transactions"])
def test_an_absent_agent_is_404(tenant: Tenant, part: str) -> None:
    answer = tenant.get(f"/vault/absent/{part}")

    assert (answer.status_code, answer.json()["data"]["code"]) == (404, "agent_absent")
