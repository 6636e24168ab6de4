"""Sealing: a kill loses nothing, nothing changed stays unseen, an older database is noticed. Promises P7, P9."""

import random
import threading
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from custody.audit.checkpoint import open_note
from custody.audit.tree import root
from ops import doctor_audit
from ops.settings import load
from tests.audit.mutations import KINDS, finding_on
from tests.audit.sealed import Copy, Log, behind_its_back, command, seal
from tests.fixtures.deployments import owner_of
from tests.fixtures.server import Service
from tests.fixtures.signer_socket import greet


async def places(log: Log) -> list[tuple[int, bool]]:
    """Each leaf's place, and whether its row waits all the same."""
    async with owner_of(log.service.database) as owner:
        rows = await owner.fetch(
            "SELECT l.log_index, u.seq IS NOT NULL AS waits FROM audit a "
            "LEFT JOIN audit_leaves l ON l.tenant_id = a.tenant_id AND l.seq = a.seq "
            "LEFT JOIN audit_unsealed u ON u.tenant_id = a.tenant_id AND u.seq = a.seq "
            "WHERE a.tenant_id = $1 ORDER BY l.log_index",
            log.tenant.id,
        )
    return [tuple(row) for row in rows]


async def test_every_row_has_one_place_without_a_gap(log: Log) -> None:
    found = await places(log)

    assert found == [(number, False) for number in range(len(found))]
    assert log.seal()["sealed"] == 0
    assert log.problem(log.export()) is None


async def test_a_signer_killed_while_it_seals_loses_no_row(log: Log) -> None:
    log.act(10)
    ended = threading.Thread(target=_try_to_seal, args=[log.service])
    ended.start()
    log.service.kill("signer")
    ended.join()
    log.service.start("signer")
    kept = log.note
    # What the killed one had asked may end only now, and then the first call does nothing.
    log.seal()
    log.seal()

    found = await places(log)
    assert found == [(number, False) for number in range(len(found))]
    assert log.problem(log.export(), kept) is None


def _try_to_seal(service: Service) -> None:
    # It is killed meanwhile: the connection ends, or nothing is heard any more.
    with suppress(OSError, AssertionError, TypeError, ValueError):
        seal(service)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
async def test_sealed_rows_that_were_changed_are_found(log: Log, kind: object) -> None:
    chance, copy = random.Random(7), await Copy.of(log)
    size = len(await places(log))

    came_to = {}
    for _ in range(4):
        mutation = kind(chance, size)  # type: ignore[operator]
        came_to[mutation.said] = await finding_on(log, copy, mutation)

    assert {said for said, problem in came_to.items() if problem is None} == set()
    assert log.problem(log.export()) is None


async def test_a_log_cut_together_with_its_checkpoints_is_detected_with_a_kept_checkpoint(log: Log) -> None:
    old = await Copy.of(log)
    log.act()
    log.seal()
    kept = log.note

    await old.put_back(log)

    content = log.export()
    assert log.problem(content) is None
    assert "shorter than it was" in str(log.problem(content, kept))


async def test_an_older_database_is_sealed_no_more_and_everybody_is_told(log: Log) -> None:
    old = await Copy.of(log)
    log.act()
    log.seal()
    new = await Copy.of(log)
    await old.put_back(log)
    log.act()

    assert log.seal()["stopped"] > 0
    assert log.tenant.id in stopped_logs(log.service)
    assert f'"log":"{log.tenant.id}"' in log.service.logs().replace(" ", "")
    # After a restart even before anything of it waits.
    await behind_its_back(log, "DELETE FROM audit_unsealed WHERE tenant_id = $1")
    log.service.kill("signer")
    log.service.start("signer")
    log.seal()
    assert log.tenant.id in stopped_logs(log.service)
    assert log.agent.sign().json()["data"]["code"] == "database_rolled_back"
    # Others go on, and so does this one once it is what it was.
    with closing(Log(log.service, acts=1)) as other:
        assert other.problem(other.export()) is None
    await new.put_back(log)
    log.seal()
    log.act()
    log.seal()
    assert log.tenant.id not in stopped_logs(log.service)
    assert log.problem(log.export()) is None


async def test_a_log_that_is_as_long_but_another_is_sealed_no_more(log: Log) -> None:
    size = len(await places(log))
    forged = [bytes([number]) * 32 for number in range(size.bit_count())]
    async with owner_of(log.service.database) as owner:
        await owner.execute(
            "UPDATE audit_checkpoints SET root = $2, frontier = $3 WHERE tenant_id = $1 AND size = $4",
            log.tenant.id,
            root(forged),
            forged,
            size,
        )
    log.act()
    log.seal()

    assert log.tenant.id in stopped_logs(log.service)


@pytest.mark.parametrize(
    "harm",
    [
        "INSERT INTO audit_unsealed SELECT tenant_id, seq FROM audit_leaves WHERE tenant_id = $1 AND log_index = 0",
        "INSERT INTO audit_leaves SELECT tenant_id, log_index + 1, -1, hash FROM audit_leaves WHERE tenant_id = $1 "
        "ORDER BY log_index DESC LIMIT 1",
    ],
    ids=["a sealed row waits again", "its next place is taken"],
)
async def test_a_log_that_cannot_be_sealed_holds_up_no_other(log: Log, harm: str) -> None:
    with closing(Log(log.service, acts=1)) as other:
        first, later = sorted((log, other), key=lambda one: one.tenant.id)
        good = await Copy.of(first)
        first.act()
        later.act()
        await behind_its_back(first, harm)

        assert first.seal()["stopped"] > 0
        assert await waiting(later) == 0
        assert first.tenant.id in stopped_logs(log.service)
        assert later.tenant.id not in stopped_logs(log.service)
        await good.put_back(first)
        first.act()
        first.seal()
        assert (await waiting(first), first.tenant.id in stopped_logs(log.service)) == (0, False)


@pytest.mark.parametrize(
    "name", ["{}\n777\n{}", "{} 999999 {} ."], ids=["a line of a checkpoint", "a line of the journal"]
)
async def test_a_log_line_of_another_tenant_cannot_be_written(log: Log, name: str) -> None:
    odd = name.format(log.tenant.id, "00" * 32)
    async with owner_of(log.service.database) as owner:
        await owner.execute("SELECT set_config('custody.tenant', $1, false)", odd)
        with pytest.raises(asyncpg.CheckViolationError):
            await owner.execute("SELECT audit_append('system', 'x', 'x.y', 'x', 'x', '{}', NULL)")
        # Who can write the tables comes no further.
        await owner.execute("INSERT INTO audit_unsealed (tenant_id, seq) VALUES ($1, 1)", odd)
        try:
            log.act()
            log.seal()
            assert odd in stopped_logs(log.service)
            assert await owner.fetchval("SELECT count(*) FROM audit_checkpoints WHERE tenant_id = $1", odd) == 0
            assert odd not in (log.service.home / "signer" / "audit.log").read_text()
        finally:
            await owner.execute("DELETE FROM audit_unsealed WHERE tenant_id = $1", odd)
    assert log.problem(log.export()) is None


async def waiting(log: Log) -> int:
    """Count the log's rows that have no place yet."""
    async with owner_of(log.service.database) as owner:
        return await owner.fetchval("SELECT count(*) FROM audit_unsealed WHERE tenant_id = $1", log.tenant.id)


# ---- accepting what was restored


def accept_restore(service: Service) -> dict[str, list[str]]:
    """The operator says that they restored an older database."""
    with greet(service, "operator") as wire:
        outcome = wire.ask("AcceptRestore", {}, {"kind": "platform_key", "value": service.platform_key})
    assert outcome["type"] == "Done", outcome
    return outcome["data"]


async def test_a_log_is_gone_on_from_as_it_was_restored(log: Log) -> None:
    old = await Copy.of(log)
    log.act(2)
    log.seal()
    await old.put_back(log)

    assert log.tenant.id in accept_restore(log.service)["logs"]
    log.act()
    log.seal()
    assert log.tenant.id not in stopped_logs(log.service)
    assert log.problem(log.export()) is None


FORGED = [bytes([number]) * 32 for number in range(1)]


@pytest.mark.parametrize(
    "harm",
    [
        f"UPDATE audit_checkpoints SET size = 1, root = '\\x{root(FORGED).hex()}', "
        f"frontier = ARRAY['\\x{FORGED[0].hex()}'::bytea] WHERE tenant_id = $1",
        "UPDATE audit_checkpoints SET frontier = '{}' WHERE tenant_id = $1",
    ],
    ids=["never signed by us", "does not hold together"],
)
async def test_a_head_that_we_never_signed_is_not_accepted_and_others_are(log: Log, harm: str) -> None:
    with closing(Log(log.service, acts=1)) as other:
        good, old = await Copy.of(log), await Copy.of(other)
        other.act()
        other.seal()
        await old.put_back(other)
        await behind_its_back(
            log,
            "DELETE FROM audit_checkpoints c WHERE tenant_id = $1 AND size <> "
            "(SELECT max(size) FROM audit_checkpoints WHERE tenant_id = $1)",
            harm,
        )

        said = accept_restore(log.service)

        assert log.tenant.id in said["refused"]
        assert log.tenant.id not in said["logs"]
        assert other.tenant.id in said["logs"]
        assert log.tenant.id in stopped_logs(log.service)
        # What the signer remembers is what it was: the right database is gone on from.
        await good.put_back(log)
        log.seal()
        log.act()
        log.seal()
        assert log.tenant.id not in stopped_logs(log.service)
        assert log.problem(log.export()) is None


# ---- mending a log that is stopped


def mend(service: Service, *logs: str) -> dict[str, list[dict[str, Any]]]:
    """The operator has these logs put in order, or all that are stopped."""
    with greet(service, "operator") as wire:
        body = {"logs": list(logs)} if logs else {}
        outcome = wire.ask("MendAuditLogs", body, {"kind": "platform_key", "value": service.platform_key})
    assert outcome["type"] == "Done", outcome
    return outcome["data"]


_QUEUED_TWICE = (
    "INSERT INTO audit_unsealed SELECT tenant_id, seq FROM audit_leaves WHERE tenant_id = $1 AND log_index = 0"
)


async def test_a_stopped_log_is_mended_and_says_so_itself(log: Log) -> None:
    log.act(2)
    # One row left the queue, a sealed one waits again, and a line of no row stands in it.
    await behind_its_back(
        log,
        "DELETE FROM audit_unsealed WHERE seq = (SELECT max(seq) FROM audit_unsealed WHERE tenant_id = $1)",
        _QUEUED_TWICE,
        "INSERT INTO audit_unsealed VALUES ($1, 9000000000000)",
    )
    log.seal()
    assert log.tenant.id in stopped_logs(log.service)
    # Nothing was restored, so there is nothing to accept; and it is not said to be mended by it.
    status, told = command("restore", "--accept", home=log.service.home)
    assert (status, f"NOT the log of {log.tenant.id}: it is not an older state" in told) == (1, True), told
    assert log.tenant.id in stopped_logs(log.service)
    finding = await doctor_audit.sealed_logs(load({"SERVICE_HOME": str(log.service.home)}))
    assert (log.tenant.id in finding.found, "`custody audit mend`" in str(finding.cure)) == (True, True)

    status, told = command("audit", "mend", home=log.service.home)

    assert f"MENDED  {log.tenant.id}: 1 rows put into the queue, 2 taken out of it" in told, (status, told)
    log.seal()
    assert log.tenant.id not in stopped_logs(log.service)
    assert [place for place, _ in await places(log)] == list(range(len(await places(log))))
    assert log.problem(log.export()) is None
    row = log.owner.ok("GET", "/audit/events?action=audit.mended")["data"][0]
    assert (row["resource_id"], row["metadata"]["queued"]) == (log.tenant.id, 1)
    assert row["actor_id"].startswith("platform-key:")


async def test_an_older_database_is_not_mended(log: Log) -> None:
    old = await Copy.of(log)
    log.act()
    log.seal()
    await old.put_back(log)

    said = mend(log.service, log.tenant.id, "nobody")

    assert {one["log"]: one["reason"].partition(",")[0] for one in said["refused"]} == {
        log.tenant.id: "it has 9 rows",
        "nobody": "there is no such log",
    }
    assert said["mended"] == []
    assert log.tenant.id in accept_restore(log.service)["logs"]


def stopped_logs(service: Service) -> list[str]:
    """The logs that the signer seals no more."""
    with greet(service, "scheduler") as wire:
        return wire.ask("Status")["data"]["stopped_logs"]


async def test_a_signer_continues_a_log_that_another_signer_sealed(log: Log) -> None:
    before = log.service.home / "signer" / "audit.log"
    remembered = before.read_text()
    log.act(3)
    log.seal()
    # The journal is behind, as after a kill between the commit and the note of it.
    log.service.kill("signer")
    before.write_text(remembered)
    log.service.start("signer")
    log.act()

    log.seal()
    assert log.tenant.id not in stopped_logs(log.service)
    assert log.problem(log.export()) is None


def test_every_checkpoint_is_in_the_operators_file(log: Log, checkpoint_file: Path) -> None:
    assert f"{log.note}\n" in checkpoint_file.read_text()


def test_checkpoints_that_found_no_room_are_written_later(log: Log, checkpoint_file: Path) -> None:
    aside = checkpoint_file.rename(checkpoint_file.with_suffix(".aside"))
    checkpoint_file.mkdir()
    log.act()
    log.seal()
    checkpoint_file.rmdir()
    aside.rename(checkpoint_file)

    log.seal()

    assert f"{log.note}\n" in checkpoint_file.read_text()


async def test_a_minute_keeps_one_checkpoint_and_older_ones_can_still_be_gone_on_from(log: Log) -> None:
    kept = log.note
    log.act()
    log.seal()

    async with owner_of(log.service.database) as owner:
        stored = await owner.fetch("SELECT size, created_at FROM audit_checkpoints WHERE tenant_id = $1", log.tenant.id)
    assert len({row["created_at"].replace(second=0, microsecond=0) for row in stored}) == len(stored)
    size = open_note(kept, log.keys).size
    assert log.problem(log.export(since=size, action="tx.signed"), kept) is None
