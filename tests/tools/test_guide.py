"""The guide's commands and its program are run as they stand on the page."""

import re
import subprocess
from pathlib import Path

from tests.fixtures.callers import ADDRESS, Tenant
from tests.fixtures.server import EVM_CHAIN, Service
from tests.outside.evm_node import EvmNode
from tests.outside.mcp_clients.driven import PYTHON, set_up
from tests.outside.processes import PROJECT

PAGE = "docs/mcp.md"
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", (PROJECT / PAGE).read_text(), re.DOTALL)


def test_every_program_of_the_page_is_run_here() -> None:
    assert [kind for kind, _ in BLOCKS] == ["sh", "python"]


def test_an_invoice_is_paid_once_by_the_pages_program(
    service: Service, tenant: Tenant, evm_node: EvmNode, tmp_path: Path
) -> None:
    set_up()
    commands, program = (text for _, text in BLOCKS)
    given = {"PATH": "/usr/bin:/bin:/usr/local/bin", "url": service.url, "key": tenant.key}
    made = subprocess.run(
        ["sh", "-euc", commands], cwd=tmp_path, env=given, check=True, capture_output=True, text=True, timeout=60
    )
    evm_node.fund(made.stdout.strip().splitlines()[0])
    (tmp_path / "pay.py").write_text(program)
    environment = {
        "PATH": given["PATH"],
        "PYTHONPATH": str(PROJECT),
        "SERVICE_URL": service.url,
        "SERVICE_AGENT_TOKEN_FILE": str(tmp_path / "buyer.token"),
    }

    def pay(name: str, amount: str) -> str:
        command = [PYTHON, "-P", "pay.py", name, ADDRESS, amount, str(EVM_CHAIN)]
        ran = subprocess.run(
            command, cwd=tmp_path, env=environment, check=True, capture_output=True, text=True, timeout=90
        )
        return ran.stdout

    first, again = pay("invoice-1", "7"), pay("invoice-1", "7")
    assert "'outcome': 'signed'" in first
    assert first == again
    assert "'outcome': 'waiting'" in pay("invoice-2", "700")
    assert "'outcome': 'refused'" in pay("invoice-3", "1001")
    assert "idempotency_mismatch: " in pay("invoice-1", "8")
    assert len(tenant.ok("GET", "/vault/buyer/transactions")["transactions"]) >= 2
