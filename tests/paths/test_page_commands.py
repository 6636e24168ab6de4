"""The short programs of pages that are about something else: docs/api.md, docs/orders.md, docs/operate.md."""

import json
import uuid
from pathlib import Path

import pytest
from eth_account import Account
from eth_account.messages import encode_defunct

from tests.fixtures.callers import Tenant
from tests.fixtures.pages import Reader, only, programs_of
from tests.fixtures.server import Service
from tests.outside.evm_node import running_evm_node

API, ORDERS, OPERATE = "docs/api.md", "docs/orders.md", "docs/operate.md"


@pytest.fixture
def reader(tmp_path: Path, service: Service) -> Reader:
    return Reader(tmp_path, service)


def test_each_of_the_pages_has_the_programs_that_are_known() -> None:
    # Of those for the operator, two are for other places: an image, and uids.
    assert {page: len(programs_of(page)) for page in (API, ORDERS, OPERATE)} == {API: 1, ORDERS: 1, OPERATE: 3}


def test_a_wallet_gets_play_money(reader: Reader) -> None:
    [program] = only(programs_of(API), "sh")
    wallet = "0x" + "5a" * 20
    with running_evm_node("py-evm") as node:
        reader.paste(program.replace("http://127.0.0.1:PORT", node.url).replace("0x<the wallet>", wallet))

        assert int(node.rpc("eth_getBalance", wallet, "latest"), 16) == 10**18


def test_a_message_is_signed_by_the_wallet(reader: Reader, tenant: Tenant) -> None:
    [program] = only(programs_of(ORDERS), "sh")
    agent = tenant.agent(agent_id="buyer")
    reader.environment["token"] = agent.headers["Authorization"].removeprefix("Bearer ")

    signed = json.loads(reader.paste(program))["data"]["signature"]

    message = encode_defunct(text="I own this wallet.")
    assert Account.recover_message(message, signature=signed).lower() == agent.evm_address.lower()


def test_the_operator_makes_a_tenant_and_its_owner(reader: Reader) -> None:
    name = f"my-company-{uuid.uuid4().hex[:8]}"
    [program] = [block for block in only(programs_of(OPERATE), "sh") if "custody tenants create" in block]

    said = reader.paste(program.replace("my-company", name))

    assert "ada@example.com" in said.splitlines()[-1]
    assert (reader.folder / f"{name}.key").stat().st_mode & 0o777 == 0o600
