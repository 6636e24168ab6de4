"""The master key gets new versions while the service runs: everything is resealed, and nothing is lost on the way."""

import os
import re
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from custody.protocol.frames import VERSION
from ops import places
from signer.rotation.registry import KINDS
from tests.fixtures.callers import Tenant, new_tenant, rule
from tests.fixtures.deployments import database_apart, deploy, owner_of
from tests.fixtures.eventually import soon
from tests.fixtures.keepsakes import Keepsakes, custody, keepsakes, made_by
from tests.fixtures.safes import tamper
from tests.fixtures.server import Service
from tests.fixtures.signer_socket import greet

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def apart(postgres_home: places.Home, worker_id: str) -> Iterator[Service]:
    """A deployment whose key this file may rotate."""
    with deploy(database_apart(postgres_home, f"{worker_id}_rotation")) as service:
        yield service


@pytest.fixture(scope="module")
def other_key_file(apart: Service, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The master key file of another host."""
    return write_key(tmp_path_factory.mktemp("elsewhere"), (apart.home / "master.key").read_text())


@pytest.fixture(scope="module")
def elsewhere(apart: Service, other_key_file: Path) -> Iterator[Service]:
    """A signer and an api of that host, on the same database."""
    keys = {
        "SERVICE_MASTER_KEY_FILE": str(other_key_file),
        "SERVICE_PLATFORM_KEY_FILE": str(apart.home / "platform.key"),
    }
    with deploy(apart.database, **keys) as other:
        (other.home / "platform.key").symlink_to(apart.home / "platform.key")
        yield other


@pytest.fixture
def one_of_each(apart: Service) -> Iterator[Keepsakes]:
    """One of everything that is sealed."""
    with keepsakes(apart) as found:
        yield found


@pytest.fixture
def tenant(apart: Service) -> Iterator[Tenant]:
    """A tenant of this deployment."""
    with new_tenant(apart) as found:
        yield found


async def test_everything_is_resealed_and_still_valid(apart: Service, one_of_each: Keepsakes) -> None:
    before = versions_in(apart)
    assert {kind.table for kind in KINDS if not await made_by(apart, kind.table)} == set()

    ended = custody(apart, "keys", "rotate")

    newest = max(versions_in(apart))
    assert (ended.returncode, ended.stderr) == (0, "")
    assert versions_in(apart) == [*before, newest]
    assert {kind.table: set(await made_by(apart, kind.table)) for kind in KINDS} == {k.table: {newest} for k in KINDS}
    one_of_each.all_count()
    restart(apart)
    one_of_each.all_count()


def test_the_file_stays_the_signers_alone_and_the_status_says_what_seals(apart: Service, tenant: Tenant) -> None:
    rotate(apart)
    file = apart.home / "master.key"

    said = custody(apart, "keys", "status")

    newest = max(versions_in(apart))
    assert file.stat().st_mode & 0o777 == 0o600
    assert said.returncode == 0, said.stderr
    assert f"version {newest} seals" in said.stdout
    assert re.search(rf"{newest}  seals, since .*tenants' keys", said.stdout)
    assert not [key for key in re.findall(r"[0-9a-f]{64}", file.read_text()) if key in said.stdout + apart.logs()]


async def test_a_tampered_row_is_not_resealed(apart: Service, tenant: Tenant) -> None:
    bad, good = tenant.agent(rule("spending-limit", maxPerDay="10")), tenant.agent()
    await tamper(apart, "UPDATE policy_rules SET config = '{{}}' WHERE agent_id = {a}", a=bad.id)
    await tamper(
        apart,
        "UPDATE sealed SET blob = (SELECT blob FROM sealed WHERE owner = {b} AND purpose = 'evm') "
        "WHERE owner = {a} AND purpose = 'evm'",
        a=bad.id,
        b=good.id,
    )

    ended = custody(apart, "keys", "rotate", "--new")

    left = {
        table: sum(n for v, n in (await made_by(apart, table)).items() if v != max(versions_in(apart)))
        for table in ("sealed", "policy_heads")
    }
    assert ended.returncode == 1
    assert "1 sets of rules still use an older version" in ended.stderr
    assert "fail their integrity check" in ended.stderr
    assert left == {"sealed": 1, "policy_heads": 1}
    assert (bad.sign().status_code, good.sign().status_code) == (503, 200)
    tenant.ok("DELETE", f"/agents/{bad.id}")


async def test_an_old_version_goes_only_when_nothing_uses_it(apart: Service, one_of_each: Keepsakes) -> None:
    rotate(apart)
    newest = max(versions_in(apart))
    young = custody(apart, "keys", "rotate", "--retire")
    await settle(apart)
    in_use = custody(apart, "keys", "rotate", "--retire")
    still = versions_in(apart)

    ended = custody(apart, "keys", "rotate", "--retire", "--at-once")

    assert [young.returncode, in_use.returncode] == [1, 1]
    assert "for less than 1 minute" in young.stderr
    assert "recovery codes" in in_use.stderr
    assert len(still) > 1
    assert (ended.returncode, versions_in(apart)) == (0, [newest]), ended.stderr
    assert one_of_each.owner.refresh().status_code == 401
    assert one_of_each.agent.sign(value=1).status_code == 200
    restart(apart)
    assert one_of_each.agent.sign(value=1).status_code == 200
    async with owner_of(apart.database) as owner:
        with pytest.raises(Exception, match="retired"):
            await owner.execute("UPDATE sealed SET blob = set_byte(blob, 4, 1) WHERE owner = $1", one_of_each.agent.id)


def test_signing_and_changing_continue_during_a_rotation(apart: Service, tenant: Tenant) -> None:
    agents = [tenant.agent(rule("spending-limit", maxPerDay="100000")) for _ in range(4)]
    done = threading.Event()

    def live(place: int) -> list[int]:
        said = []
        while not done.is_set():
            said.append(agents[place].sign().status_code)
            rules = [rule("spending-limit", maxPerDay=str(100_000 + len(said)))]
            said.append(tenant.put(f"/agents/{agents[place].id}/policies", json=rules).status_code)
        return said

    with ThreadPoolExecutor(len(agents)) as crowd:
        lives = [crowd.submit(live, place) for place in range(len(agents))]
        try:
            ended = custody(apart, "keys", "rotate")
        finally:
            done.set()
        said = [code for one in lives for code in one.result()]

    assert ended.returncode == 0, ended.stderr
    assert set(said) == {200}
    assert verify(apart) == 0


def test_killed_in_the_middle_it_goes_on_and_loses_nothing(apart: Service, tenant: Tenant) -> None:
    agents = [{"id": f"w-{n}", "name": "W"} for n in range(200)]
    for start in range(0, len(agents), 100):
        tenant.ok("POST", "/agents/batch", {"agents": agents[start : start + 100]})
    last = tenant.agent()
    killed_after(apart, 0, begin=True)
    before = versions_in(apart)
    killed_after(apart, 1)
    ended = custody(apart, "keys", "rotate")

    assert (ended.returncode, verify(apart)) == (0, 0), ended.stderr
    assert versions_in(apart) == before
    assert last.sign().status_code == 200


async def test_another_host_without_the_version_refuses_until_it_has_it(
    apart: Service, elsewhere: Service, other_key_file: Path
) -> None:
    with new_tenant(elsewhere) as tenant:
        agent = tenant.agent()
        rotate(apart)

        # Every two seconds a signer looks which versions there are; until then this one's answer is no clearer.
        missing = await soon(lambda: code_of(agent.sign()), "key_version_missing")
        told = elsewhere.logs()
        other_key_file.write_text((apart.home / "master.key").read_text())

        assert missing
        assert "lacks a version" in told
        assert agent.sign().status_code == 200


def test_a_version_that_was_copied_first_is_never_missed(
    apart: Service, elsewhere: Service, other_key_file: Path
) -> None:
    with new_tenant(elsewhere) as tenant:
        agent = tenant.agent()
        prepared = custody(apart, "keys", "rotate", "--prepare")
        other_key_file.write_text((apart.home / "master.key").read_text())
        before = agent.sign()
        rotate(apart)
        after = agent.sign()

    assert (prepared.returncode, "seals nothing yet" in prepared.stdout) == (0, True)
    assert (before.status_code, after.status_code) == (200, 200)


@pytest.mark.parametrize("act", ["begin", "retire", "status"])
def test_only_the_operator_rotates(apart: Service, tenant: Tenant, act: str) -> None:
    with greet(apart, "api") as wire:
        as_api = wire.ask("RotateKeys", {"act": act}, {"kind": "platform_key", "value": apart.platform_key})
    with greet(apart, "operator") as wire:
        as_tenant = wire.ask("RotateKeys", {"act": act}, {"kind": "tenant_key", "value": tenant.key})
        as_nobody = wire.ask("RotateKeys", {"act": act})

    assert as_api["code"] == "message_not_allowed"
    assert (as_tenant["kind"], as_nobody["kind"]) == ("Forbidden", "BadProof")


def test_a_file_that_lacks_a_version_is_refused(apart: Service, tmp_path: Path) -> None:
    rotate(apart)
    text = (apart.home / "master.key").read_text()
    newest = max(versions_in(apart))
    lacking = write_key(tmp_path, "".join(line for line in text.splitlines(True) if not line.startswith(f"{newest} ")))

    code, said = apart.run_to_end("signer", SERVICE_MASTER_KEY_FILE=str(lacking))

    assert code == 1
    assert f"lacks version {newest}" in said
    assert "Copy its line" in said


def test_another_key_under_the_same_version_is_refused(apart: Service, tmp_path: Path) -> None:
    text = (apart.home / "master.key").read_text()
    newest = max(versions_in(apart))
    wrong = write_key(tmp_path, re.sub(rf"(?m)^{newest} .*$", f"{newest} {'ab' * 32}", text))

    code, said = apart.run_to_end("signer", SERVICE_MASTER_KEY_FILE=str(wrong))

    assert code == os.EX_CONFIG
    assert f"its version {newest} is another key" in said
    assert "abab" not in said


async def test_a_look_that_fails_is_not_the_last(apart: Service) -> None:
    signer, file = apart.processes["signer"], apart.home / "master.key"
    before = apart.logs().count("was not taken")
    async with owner_of(apart.database) as owner:
        await owner.execute("REVOKE SELECT ON key_versions FROM custody_signer")
        try:
            signer.send_signal(signal.SIGHUP)
            await soon(lambda: "the versions of a key file could not be read" in apart.logs(), True)
            said = [custody(apart, *words) for words in (("keys", "status"), ("keys", "rotate"))]
        finally:
            await owner.execute("GRANT SELECT ON key_versions TO custody_signer")
    for ended in said:
        assert (ended.returncode, "Traceback" in ended.stderr) == (1, False), ended.stderr
        assert "Internal error of the signer." in ended.stderr
    file.chmod(0o644)
    # The name is the same, so only a newer time tells that there is something to read.
    os.utime(file)
    try:
        signer.send_signal(signal.SIGHUP)
        assert await soon(lambda: apart.logs().count("was not taken") > before, True)
    finally:
        file.chmod(0o600)
        os.utime(file)


OTHER_KEY = "ab" * 32


@pytest.mark.parametrize("words", [["--new"], ["--prepare"], ["--retire", "--at-once"]])
@pytest.mark.parametrize("damage", ["open to others", "half edited", "another key"])
def test_a_file_that_cannot_be_used_is_refused_and_the_signer_signs_on(
    apart: Service, tenant: Tenant, words: list[str], damage: str
) -> None:
    file, agent = apart.home / "master.key", tenant.agent()
    text, before = file.read_text(), versions_in(apart)
    newest = max(before)
    said, changed, mode = {
        "open to others": (f"Run: chmod 600 {file}", text, 0o644),
        "half edited": ("each line is a version", f"{text}{newest + 1}\n", 0o600),
        "another key": ("is another key", re.sub(rf"(?m)^{newest} .*$", f"{newest} {OTHER_KEY}", text), 0o600),
    }[damage]

    file.write_text(changed)
    file.chmod(mode)
    try:
        ended = custody(apart, "keys", "rotate", *words)
        signed = agent.sign(value=1)
    finally:
        file.write_text(text)
        file.chmod(0o600)

    assert (ended.returncode, signed.status_code) == (1, 200), ended.stderr
    assert said in ended.stderr
    assert OTHER_KEY not in ended.stderr
    assert apart.processes["signer"].poll() is None
    assert versions_in(apart) == before


def code_of(answer: httpx.Response) -> str:
    """The code of a refusal that is ours to make, 503."""
    assert answer.status_code == 503, answer.text
    return str(answer.json()["data"]["code"])


def versions_in(service: Service) -> list[int]:
    """The versions of the master key file, in its order."""
    lines = (service.home / "master.key").read_text().splitlines()
    return [int(line.split(" ")[0]) for line in lines if not line.startswith("#")]


def rotate(service: Service) -> None:
    """Rotate once, whatever is left of others' tampering."""
    ended = custody(service, "keys", "rotate", "--new")
    assert ended.returncode == 0, ended.stderr


def restart(service: Service) -> None:
    service.kill("signer")
    service.start("signer")


def verify(service: Service) -> int:
    """The exit status of the proof that everything opens."""
    ended = custody(service, "restore", "--verify")
    print(ended.stdout, ended.stderr)
    return ended.returncode


async def settle(service: Service) -> None:
    """As if the present version had been begun an hour ago, and every session used since before."""
    async with owner_of(service.database) as owner:
        await owner.execute(
            "UPDATE key_versions SET begun_at = begun_at - interval '1 hour' WHERE begun_at IS NOT NULL"
        )
        await owner.execute("UPDATE sessions SET used_at = used_at - interval '2 hours'")


def killed_after(service: Service, steps: int, *, begin: bool = False) -> None:
    """Take some steps of a rotation, kill the signer while it works on the next, and start it again."""
    proof = {"kind": "platform_key", "value": service.platform_key}
    with greet(service, "operator") as wire:
        begun = wire.ask("RotateKeys", {"act": "begin", "force": begin}, proof)
        assert begun["begun"] is begin, begun
        place: dict[str, Any] = {}
        for _ in range(steps):
            step = wire.ask("RotateKeys", {"act": "step", **place}, proof)
            place = {"table": step["table"], "after": step["after"]}
        request = {"v": VERSION, "n": 8, "deadline_ms": 5000, "origin": {"request_id": "test"}, "proof": proof}
        wire.say(request | {"body": {"type": "RotateKeys", "act": "step", **place}})
        service.kill("signer")
    service.start("signer")


def write_key(folder: Path, content: str) -> Path:
    path = folder / "other.key"
    path.write_text(content)
    path.chmod(0o600)
    return path
