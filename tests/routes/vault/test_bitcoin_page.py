"""The program of docs/bitcoin.md, run against the service as it stands, and what the page says of rules and caps."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import msgspec
import pytest
from embit.transaction import Transaction

from custody.chains.bitcoin.bounds import Bounds
from custody.chains.chains_file import load
from tests.fixtures.bitcoin import SOMEBODY, address_of, coin, script_of
from tests.fixtures.callers import Tenant
from tests.fixtures.people import Person
from tests.fixtures.server import Service
from tests.outside.processes import PROJECT
from tests.routes.vault.bitcoin import address
from tests.routes.vault.transfers import with_signer

PAGE = (PROJECT / "docs/bitcoin.md").read_text()
# Of each language the first one; the second program is run by tests/judges/test_bitcoin_watching.py.
BLOCKS = dict(reversed(re.findall(r"```(\w+)\n(.*?)```", PAGE, re.DOTALL)))


def test_the_program_of_the_page_pays_under_the_rules_of_the_page(
    service: Service, tenant: Tenant, as_owner: Person, tmp_path: Path
) -> None:
    rules = msgspec.json.decode(BLOCKS["json"].replace("bitcoin:mainnet", "bitcoin:regtest"))
    agent = with_signer(as_owner, tenant.agent(*rules), "sign_transaction")
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "SERVICE_URL": service.url,
        "AGENT": agent.id,
        "SERVICE_AGENT_TOKEN": agent.headers["Authorization"].removeprefix("Bearer "),
        "SIGNER": agent.signer["X-Service-Signer-Id"],
        "SIGNER_SECRET": agent.signer["X-Service-Signer-Secret"],
        "FUNDING": str(coin(script_of(address(agent)["address"]), 100_000, "page")),
        "TO": address_of(SOMEBODY),
    }

    ended = subprocess.run(
        [sys.executable, "-c", BLOCKS["python"]], env=environment, capture_output=True, text=True, check=False
    )

    assert ended.returncode == 0, ended.stdout + ended.stderr
    answer = msgspec.json.decode(ended.stdout)
    made = Transaction.from_string(answer["finalizedTxHex"])
    assert (made.txid().hex(), answer["signedInputs"], answer["feeSats"]) == (answer["txId"], 1, "500")
    kept = agent.ok("GET", f"/vault/{agent.id}/transactions/{answer['transactionId']}")
    # Change that was hinted at is no payment.
    assert [one["amount"] for one in kept["effects"]] == ["25000", "500"]


def test_the_caps_of_the_page_are_read_as_it_writes_them(tmp_path: Path) -> None:
    file = tmp_path / "chains.toml"
    file.write_text(BLOCKS["toml"])

    caps = load({"SERVICE_CHAINS_FILE": str(file)}).bounds["bitcoin"]

    assert caps["mainnet"] == Bounds(50_000, 200, 3, 200_000, 1_000, 3_000, 83, 1)
    assert caps["testnet"] == Bounds()
    assert len(tomllib.loads(BLOCKS["toml"])["bitcoin"][0]) == 9


@pytest.mark.parametrize("field", Bounds.__struct_fields__)
def test_the_page_names_every_cap(field: str) -> None:
    assert f"\n{field} = " in BLOCKS["toml"]


def test_the_page_tells_of_the_caps_that_hold_by_themselves() -> None:
    caps = Bounds()

    said = f"{caps.absolute:,} sat, {caps.per_vbyte} sat/vB, and {caps.share_percent} % of what is paid where that is"
    assert f"{said} above {caps.share_above:,} sat" in " ".join(PAGE.split())
