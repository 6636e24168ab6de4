"""The alerts of docs/ ring when they must, and then alone: Prometheus' own tool plays figures to them."""

import subprocess
from pathlib import Path

import pytest
import yaml

from tests.fixtures import metrics
from tests.outside.processes import PROJECT
from tests.outside.programs import PROMTOOL, install

RULES, SCRAPES = PROJECT / "docs/alerts.yml", PROJECT / "docs/prometheus.yml"
API, PROXY, SCHEDULER = (
    f'job="custody-{name}",instance="127.0.0.1:{port}"'
    for name, port in (("api", 3290), ("proxy", 3291), ("scheduler", 3292))
)
SECOND = SCHEDULER.replace("3292", "4292")
# One a minute, and an hour of them; it happens after half of it. In the tool's clock the hour begins at 0.
EACH, STEPS, BEFORE = 60, 60, 30
ALL = f"x{STEPS}"
FRESH, ZERO, ONE = f"0+{EACH}{ALL}", f"0{ALL}", f"1{ALL}"
STOPPED = f"0+{EACH}x{BEFORE} {EACH * BEFORE}x{STEPS - BEFORE}"
GONE = f"x{BEFORE} stale"
HEALTHY: dict[str, str] = {
    **{f"up{{{target}}}": ONE for target in (API, PROXY, SCHEDULER)},
    **{f"process_start_time_seconds{{{target}}}": f"5{ALL}" for target in (API, PROXY, SCHEDULER)},
    f"custody_signer_heard_timestamp_seconds{{{API}}}": FRESH,
    f"custody_identity_heard_timestamp_seconds{{{API}}}": FRESH,
    **{
        f'custody_{worker}_messages_total{{{API},name="{name}"}}': ZERO
        for worker in ("signer", "identity")
        for name in ("refused_peers", "bad_frames", "broken_commits", "audit_logs_stopped")
    },
    f'custody_signer_messages_total{{{API},name="SignEvm"}}': f"0+40{ALL}",
    f'custody_http_requests_total{{{API},method="POST",route="/vault/sign",status="200"}}': f"0+1000{ALL}",
    f'custody_http_requests_total{{{API},method="POST",route="/vault/sign",status="503"}}': f"0+1{ALL}",
    f"custody_disk_size_bytes{{{API}}}": f"100000000000{ALL}",
    f"custody_disk_free_bytes{{{API}}}": f"50000000000-1000000{ALL}",
    **{f'custody_database_full{{{API},worker="{worker}"}}': ZERO for worker in ("signer", "identity")},
    **{
        f'custody_job_last_success_timestamp_seconds{{{SCHEDULER},task="{task}"}}': FRESH
        for task in ("publish", "seal", "retain")
    },
    f'custody_webhook_attempts_total{{{SCHEDULER},outcome="delivered"}}': f"0+10{ALL}",
    f'custody_webhook_attempts_total{{{SCHEDULER},outcome="failed"}}': f"0+1{ALL}",
    **{f'custody_webhook_due_seconds_bucket{{{SCHEDULER},le="{le}"}}': f"0+10{ALL}" for le in ("1", "300", "+Inf")},
    f"custody_proxy_connections{{{PROXY}}}": f"3{ALL}",
    f"custody_proxy_turned_away_total{{{PROXY}}}": f"7{ALL}",
    f"custody_proxy_audit_waiting{{{PROXY}}}": f"10{ALL}",
}


def without(target: str, *, up: str = "") -> dict[str, str]:
    """No series of a target any more, but for the one that Prometheus makes of it."""
    gone = {name: values.replace(ALL, GONE) for name, values in HEALTHY.items() if target in name}
    return gone | ({f"up{{{target}}}": up} if up else {})


def jobs(target: str = SCHEDULER, **values: str) -> dict[str, str]:
    """Make the figures of when jobs last ended well in a scheduler."""
    return {f'custody_job_last_success_timestamp_seconds{{{target},task="{job}"}}': at for job, at in values.items()}


def now_and_then(*figures: str) -> str:
    """A figure that changes after half of the hour."""
    before, after = figures
    return f"{before}x{BEFORE} {after}x{STEPS - BEFORE}"


UP_TO_0 = now_and_then("1", "0")
LATE = "CustodyJobLate"
ELSEWHERE = 'deployment="other",'
# What is otherwise than in health, and every alert that rings at the end, by its name and labels but the severity's.
CASES: dict[str, tuple[dict[str, str], list[str]]] = {
    "healthy": ({}, []),
    "the api is gone": (without(API, up=UP_TO_0), [f"CustodyProcessGone {API}"]),
    "the scheduler is gone": (without(SCHEDULER, up=UP_TO_0), [f"CustodyProcessGone {SCHEDULER}"]),
    "the proxy is gone": (without(PROXY, up=UP_TO_0), [f"CustodyProcessGone {PROXY}"]),
    "the signer is gone": (
        {f"custody_signer_heard_timestamp_seconds{{{API}}}": STOPPED},
        [f"CustodySignerSilent {API}"],
    ),
    "the signer never came": (
        {f"custody_signer_heard_timestamp_seconds{{{API}}}": ZERO},
        [f"CustodySignerSilent {API}"],
    ),
    "identity is gone": (
        {f"custody_identity_heard_timestamp_seconds{{{API}}}": STOPPED},
        [f"CustodyIdentitySilent {API}"],
    ),
    "every series of the api is stale": (without(API), ['CustodyTargetMissing job="custody-api"']),
    "every series of the scheduler is stale": (without(SCHEDULER), ['CustodyTargetMissing job="custody-scheduler"']),
    "every series of the proxy is stale": (without(PROXY), ['CustodyTargetMissing job="custody-proxy"']),
    "another program has the api's port": (without(API, up=ONE), [f"CustodyMetricsMissing {API}"]),
    "another program has the scheduler's port": (without(SCHEDULER, up=ONE), [f"CustodyMetricsMissing {SCHEDULER}"]),
    "another program has the proxy's port": (without(PROXY, up=ONE), [f"CustodyMetricsMissing {PROXY}"]),
    "one job is late beside fresh ones": (jobs(seal=STOPPED), [f'{LATE} job="custody-scheduler",task="seal"']),
    "one job never ended well": (jobs(retain=ZERO), [f'{LATE} job="custody-scheduler",task="retain"']),
    "another scheduler did it": (jobs(seal=STOPPED) | jobs(SECOND, seal=FRESH, publish=FRESH), []),
    "one of two schedulers hangs": (
        jobs(SECOND, publish=STOPPED, seal=STOPPED),
        [f"CustodySchedulerStuck {SECOND}"],
    ),
    "a job is late in one of two deployments": (
        jobs(ELSEWHERE + SECOND, seal=STOPPED, publish=FRESH),
        [f'{LATE} {ELSEWHERE}job="custody-scheduler",task="seal"'],
    ),
    "a process begins again and again": (
        {f"process_start_time_seconds{{{SCHEDULER}}}": f"5x{STEPS - 10} 60+60x10"},
        [f"CustodyRestarts {SCHEDULER}"],
    ),
    "the disk is almost full": (
        {f"custody_disk_free_bytes{{{API}}}": now_and_then("50000000000", "1000000000")},
        [f"CustodyDiskLow {API}"],
    ),
    "a large disk has little of itself free": ({f"custody_disk_free_bytes{{{API}}}": f"4000000000{ALL}"}, []),
    "the disk fills up": (
        {f"custody_disk_free_bytes{{{API}}}": f"19000000000-200000000{ALL}"},
        [f"CustodyDiskFills {API}"],
    ),
    "the database is full": (
        {f'custody_database_full{{{API},worker="signer"}}': now_and_then("0", "1")},
        [f'CustodyDatabaseFull {API},worker="signer"'],
    ),
    "prices are old": (
        {f"custody_prices_old{{{API}}}": now_and_then("0", "1")},
        [f"CustodyPricesOld {API}"],
    ),
    "an audit log is stopped": (
        {f'custody_signer_messages_total{{{API},name="audit_logs_stopped"}}': now_and_then("0", "1")},
        [f'CustodyAuditLogsStopped {API},name="audit_logs_stopped"'],
    ),
    "a commit broke": (
        {f'custody_signer_messages_total{{{API},name="broken_commits"}}': f"0x{STEPS - 10} 1x10"},
        [f'CustodyBrokenCommits {API},name="broken_commits"'],
    ),
    "the signer refused a peer": (
        {f'custody_signer_messages_total{{{API},name="refused_peers"}}': f"0x{STEPS - 10} 1x10"},
        [f'CustodyPeersRefused {API},name="refused_peers",worker="signer"'],
    ),
    "identity refused a peer": (
        {f'custody_identity_messages_total{{{API},name="refused_peers"}}': f"0x{STEPS - 10} 1x10"},
        [f'CustodyPeersRefused {API},name="refused_peers",worker="identity"'],
    ),
    "a peer was refused long ago": (
        {f'custody_signer_messages_total{{{API},name="refused_peers"}}': now_and_then("0", "1")},
        [],
    ),
    "the proxy turns connections away": (
        {f"custody_proxy_turned_away_total{{{PROXY}}}": f"0+2{ALL}"},
        [f"CustodyTurnedAway {PROXY}"],
    ),
    "the proxy's audit rows wait": (
        {f"custody_proxy_audit_waiting{{{PROXY}}}": now_and_then("10", "6000")},
        [f"CustodyProxyAuditWaits {PROXY}"],
    ),
    "answers fail": (
        {f'custody_http_requests_total{{{API},method="POST",route="/vault/sign",status="503"}}': f"0+100{ALL}"},
        ['CustodyFaults job="custody-api"'],
    ),
    "webhooks fail": (
        {f'custody_webhook_attempts_total{{{SCHEDULER},outcome="failed"}}': f"0+50{ALL}"},
        ['CustodyWebhooksFailing job="custody-scheduler"'],
    ),
    "webhooks wait": (
        {f'custody_webhook_due_seconds_bucket{{{SCHEDULER},le="1"}}': ZERO},
        ['CustodyWebhooksBehind job="custody-scheduler"'],
    ),
}


def alert_of(rung: str) -> str:
    """The series that Prometheus keeps of an alert that rings."""
    name, labels = rung.split(" ")
    [severity] = {rule["labels"]["severity"] for rule in metrics.rules() if rule["alert"] == name}
    return f'ALERTS{{alertname="{name}",alertstate="firing",severity="{severity}",{labels}}}'


def play(changed: dict[str, str], rung: list[str], folder: Path, rules: Path = RULES) -> str:
    """Return the tool's complaints when these alerts, and no others, are to ring at the end."""
    expected = [{"labels": alert_of(one), "value": 1} for one in rung]
    test = {
        "interval": f"{EACH}s",
        "input_series": [{"series": name, "values": values} for name, values in (HEALTHY | changed).items()],
        "promql_expr_test": [
            {"expr": 'ALERTS{alertstate="firing"}', "eval_time": f"{STEPS * EACH}s", "exp_samples": expected}
        ],
    }
    file = folder / "test.yml"
    file.write_text(yaml.safe_dump({"rule_files": [str(rules)], "evaluation_interval": f"{EACH}s", "tests": [test]}))
    done = subprocess.run(
        [install(PROMTOOL), "test", "rules", file], capture_output=True, text=True, timeout=60, check=False
    )
    return done.stdout + done.stderr if done.returncode else ""


@pytest.mark.parametrize("case", CASES)
def test_alerts_ring_when_they_must_and_no_others_do(case: str, tmp_path: Path) -> None:
    changed, rung = CASES[case]

    assert play(changed, rung, tmp_path) == ""


def test_every_alert_rings_in_some_case() -> None:
    rung = {one.split(" ")[0] for _, alerts in CASES.values() for one in alerts}

    assert {rule["alert"] for rule in metrics.rules()} == rung


def test_a_rule_that_hides_one_job_behind_others_is_found_out(tmp_path: Path) -> None:
    blind = tmp_path / "blind.yml"
    blind.write_text(RULES.read_text().replace("max without (instance)", "max by (job)"))

    assert "CustodyJobLate" in play(*CASES["one job is late beside fresh ones"], tmp_path, blind)


def test_prometheus_reads_the_example_with_its_rules() -> None:
    done = subprocess.run(
        [install(PROMTOOL), "check", "config", SCRAPES], capture_output=True, text=True, timeout=60, check=False
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(metrics.rules())} rules found" in done.stdout
