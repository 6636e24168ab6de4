"""The newcomer's walk: `custody up` walks through the service, and nothing is left when it stops."""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.fixtures.eventually import eventually
from tests.fixtures.server import free_ports
from tests.outside.proc import words_of
from tests.outside.processes import PROJECT, die_with

pytestmark = pytest.mark.long

COMMAND = [sys.executable, "-P", "-m", "ops"]
# Only so that what hangs ends.
LONGEST_SECONDS = 180


class Walk(msgspec.Struct, frozen=True):
    """One start, watched from outside."""

    first: str
    repeated: subprocess.CompletedProcess[str]
    readme: list[dict[str, Any]]
    next_proxy: set[str]
    while_running: set[int]
    status: int
    left: set[int]


@pytest.fixture(scope="module")
def walk() -> Iterator[Walk]:
    """Start everything in a fresh folder, let the demo run, repeat it, stop."""
    folder = Path(tempfile.mkdtemp(prefix="cw-"))
    folder.chmod(0o755)
    environment = _environment(folder / "home")
    up = subprocess.Popen(
        [*COMMAND, "up"],
        cwd=PROJECT,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        preexec_fn=die_with(os.getpid()),  # noqa: PLW1509
    )
    watch = threading.Timer(LONGEST_SECONDS, up.kill)
    watch.start()
    first = _said_until(up, "Ctrl-C stops everything.")
    repeated = subprocess.run([*COMMAND, "demo"], cwd="/", env=environment, capture_output=True, text=True, check=False)
    readme = _readme_answers(folder / "home", environment)
    while_running = _processes_of(folder)
    next_proxy = _variables_of_the_next_proxy(folder)
    up.send_signal(signal.SIGTERM)
    up.communicate()
    watch.cancel()
    yield Walk(first, repeated, readme, next_proxy, while_running, up.returncode, _processes_of(folder))
    shutil.rmtree(folder)


def test_the_first_start_ends_with_the_service_ready_and_the_demo_whole(walk: Walk) -> None:
    assert "demo:" not in walk.first
    assert re.findall(r"^(\d+)\. ", walk.first, re.MULTILINE) == [str(number) for number in range(1, 13)]
    assert walk.first.rstrip().endswith("Ctrl-C stops everything.")


def test_exactly_as_many_parallel_payments_are_signed_as_fit_into_the_limit(walk: Walk) -> None:
    assert "signed          7 of 20, exactly what fits; refused 13" in walk.first
    assert "ledger says      1.00 ETH  of 1.00" in walk.first


def test_the_chain_paid_out_exactly_the_signed_orders(walk: Walk) -> None:
    shop = re.findall(r"the shop has +([\d.]+) ETH", walk.first)

    assert shop == ["0.01", "0.50"]
    assert "the supplier has 0.50 ETH" in walk.first
    assert re.search(r"a stranger has +0\.00 ETH", walk.first)


def test_a_refusal_names_the_rule(walk: Walk) -> None:
    assert re.search(r"because +approved-addresses: 0x[0-9a-f]{40} is not an approved address", walk.first)


def test_a_transfer_is_signed_with_two_of_three_services(walk: Walk) -> None:
    step = walk.first.split("\n8. Two of three services agree to a transfer\n")[1].split("\n9. ")[0]

    assert re.search(r"refused +0\.02 ETH  to the supplier, with the signature of billing alone", step)
    assert re.search(r"signed +0\.02 ETH  with the signatures of billing and audit", step)
    assert re.search(r"the supplier has +0\.52 ETH", step)
    assert len(step.splitlines()) < 10


def test_a_token_is_paid_under_a_limit_in_its_own_units(walk: Walk) -> None:
    step = walk.first.split("\n9. An agent pays in dollars\n")[1].split("\n10. ")[0]

    assert "signed          25 USDC to the shop" in step
    assert "the shop has    25 USDC on the chain" in step
    assert "refused         80 USDC to the shop" in step
    assert re.search(r"because +spending-limit: 80 USDC ", step)


def test_calls_are_bought_until_the_budget_ends(walk: Walk) -> None:
    step = walk.first.split("\n10. An agent buys API calls until its budget ends\n")[1].split("\n11. ")[0]

    assert "bought          5 calls, each paid by the wallet before it was answered" in step
    assert "the API has     0.10 USDC on the chain" in step
    assert re.search(r"because +spending-limit: 0\.02 USDC now and 25\.1 USDC ", step)
    assert "0.10 USDC on the chain" in walk.repeated.stdout


def test_a_psbt_is_signed_under_a_limit_and_one_above_it_is_refused(walk: Walk) -> None:
    step = walk.first.split("\n11. An agent spends bitcoins\n")[1].split("\n12. ")[0]

    assert re.search(r"address +bcrt1q[02-9ac-hj-np-z]{38} \(bitcoin:regtest:p2wpkh:0:0:0\)", step)
    assert re.search(r"signed +0\.0006 BTC to the shop; fee 0\.00001 BTC, change 0\.00139 BTC", step)
    assert re.search(r"transaction +[0-9a-f]{64}, 14[01] vbytes; broadcast it yourself", step)
    assert re.search(r"refused +0\.0005 BTC to the shop", step)
    assert re.search(r"because +spending-limit: ", step)


def test_an_api_is_called_with_a_key_that_the_agent_never_sees(walk: Walk) -> None:
    said = " ".join(walk.first.split())

    assert "the API saw the secret; the agent's token stayed at the proxy" in said
    assert re.search(r'the agent saw \{"hello":"agent","authorization":"Bearer \*{40,}"\}', said)
    assert "route deleted the same call is refused: No enabled credential route" in said


def test_after_the_first_start_the_proxy_calls_nothing_on_this_machine(walk: Walk) -> None:
    assert "refused         403: The host is or has an address that the proxy must not call." in walk.repeated.stdout


def test_permissions_of_the_walk_through_are_taken_back(walk: Walk) -> None:
    assert "SERVICE_PROXY_PORT" in walk.next_proxy
    assert {"SERVICE_PROXY_EXTRA_CA_FILE", "SERVICE_PROXY_ALLOW_PRIVATE_HOSTS"} & walk.next_proxy == set()


def test_no_key_is_in_the_transcript(walk: Walk) -> None:
    assert not re.search(r"([cp]k|demo)_[A-Za-z0-9_-]{20}", walk.first + walk.repeated.stdout)


def test_the_demo_can_be_repeated_from_another_terminal(walk: Walk) -> None:
    assert walk.repeated.returncode == 0, walk.repeated.stdout + walk.repeated.stderr
    assert "of tenant demo;" in walk.repeated.stdout
    assert "7 of 20" in walk.repeated.stdout


def test_every_command_of_the_readme_answers_as_it_says(walk: Walk) -> None:
    agent, policies, small, queue, approved, dashboard, refused, foreseen, *rest = walk.readme
    route, explained, *people = rest
    mailed, session, joined, by_a_person, decided = people

    assert agent["data"]["id"] == "buyer"
    assert len(policies["data"]) == 2
    assert small["data"]["signedTransaction"].startswith("0x02")
    assert [item["value"] for item in queue["data"]] == ["500000000000000000"]
    assert approved["data"]["status"] == "approved"
    assert dashboard["data"]["budgets"][0]["remaining"] == "490000000000000000"
    assert refused["ok"] is False
    assert (foreseen["data"]["decision"], foreseen["data"]["needed"]) == ("queue", ["approval", "funds"])
    assert route["data"]["hostPattern"] == "api.github.com"
    assert explained["data"]["reason"] == "matched"
    assert explained["data"]["matched"]["id"] == route["data"]["id"]
    assert "expiresAt" in mailed["data"]
    assert session["data"]["user"]["email"] == "ada@example.com"
    assert joined["data"]["role"] == "owner"
    assert by_a_person["data"]["status"] == "approved"
    assert decided["data"][0]["resolvedByUserId"] == session["data"]["user"]["id"]


def test_a_stop_leaves_no_process(walk: Walk) -> None:
    assert walk.status == 0
    assert len(walk.while_running) >= len(("supervisor", "postgres", "chain", "signer", "api", "scheduler", "proxy"))
    assert walk.left == set()


def _environment(home: Path) -> dict[str, str]:
    ports = map(str, free_ports(5))
    names = (
        "SERVICE_API_PORT",
        "SERVICE_PROXY_PORT",
        "SERVICE_METRICS_PORT_API",
        "SERVICE_METRICS_PORT_PROXY",
        "SERVICE_METRICS_PORT_SCHEDULER",
    )
    kept = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in os.environ}
    kept |= {"PYTHONPATH": str(PROJECT), "SERVICE_HOME": str(home)}
    return {**kept, **dict(zip(names, ports, strict=True))}


def _readme_answers(home: Path, environment: dict[str, str]) -> list[dict[str, Any]]:
    """Paste the README's commands into a shell, with this run's places in them."""
    blocks = re.findall(r"```sh\n(.*?)```", (PROJECT / "README.md").read_text(), re.DOTALL)
    # What calls an API out there is shown without `-s`, and not pasted here.
    commands = "".join(block for block in blocks if "curl -s" in block)
    places = {
        "http://127.0.0.1:3200": f"http://127.0.0.1:{environment['SERVICE_API_PORT']}",
        ".custody/": f"{home}/",
        ".venv/bin/python": sys.executable,
        ".venv/bin/custody": f"{PROJECT}/.venv/bin/custody",
    }
    for usual, here in places.items():
        assert usual in commands
        commands = commands.replace(usual, here)
    with tempfile.TemporaryDirectory() as folder:
        # A session of its own: when a command fails, what the shell began goes with it.
        shell = subprocess.Popen(
            ["sh", "-e"],
            cwd=folder,
            env=environment,
            text=True,
            start_new_session=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            preexec_fn=die_with(os.getpid()),  # noqa: PLW1509
        )
        try:
            said, complaints = shell.communicate(commands, timeout=LONGEST_SECONDS)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(shell.pid, signal.SIGKILL)
    assert shell.returncode == 0, said + complaints
    # Beside the answers there is what `custody` says to people.
    return [json.loads(line) for line in said.splitlines() if line.startswith("{")]


def _said_until(process: subprocess.Popen[str], last: str) -> str:
    assert process.stdout is not None
    said = ""
    for line in process.stdout:
        said += line
        if line.strip() == last:
            return said
    raise AssertionError(f"it ended first, with {process.wait()}:\n{said}")


def _processes_of(folder: Path) -> set[int]:
    """Every process that works in this folder or was started with it."""
    found = set()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal():
            continue
        try:
            inside = str(folder) in os.readlink(entry / "cwd")
            if inside or f"={folder}".encode() in (entry / "environ").read_bytes():
                found.add(int(entry.name))
        except OSError:
            continue
    return found


def _variables_of_the_next_proxy(folder: Path) -> set[str]:
    """Kill the proxy, and look at the one that comes in its place."""
    first = _proxy_of(folder)
    assert first
    os.kill(first, signal.SIGKILL)
    now = eventually(lambda: _proxy_of(folder), lambda found: found not in {None, first}, 30)
    return {entry.split("=")[0] for entry in Path(f"/proc/{now}/environ").read_text().split("\0")}


def _proxy_of(folder: Path) -> int | None:
    for process in _processes_of(folder):
        if words_of(process)[-1:] == ["proxy_addon"]:
            return process
    return None
