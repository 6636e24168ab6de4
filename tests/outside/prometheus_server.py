"""A real Prometheus with the shipped example, at the ports of a test's own deployment and in shorter times."""

import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import yaml

from tests.fixtures.eventually import eventually
from tests.outside import loopback
from tests.outside.processes import PROJECT, die_with
from tests.outside.programs import PROMETHEUS, install

_STARTS_WITHIN = 60


class PrometheusServer:
    """One that runs."""

    def __init__(self, url: str) -> None:
        self._url = url

    def _data(self, path: str) -> Any:
        return loopback.get(f"{self._url}/api/v1/{path}", timeout=30).json()["data"]

    def targets(self) -> dict[str, str]:
        """Each job it scrapes, and how that went."""
        return {target["labels"]["job"]: target["health"] for target in self._data("targets")["activeTargets"]}

    def rules(self) -> dict[str, str]:
        """Each alert, and how looking at it went."""
        found = [rule for group in self._data("rules")["groups"] for rule in group["rules"]]
        return {rule["name"]: rule["health"] for rule in found}

    def ringing(self) -> set[tuple[str, str]]:
        """The alerts that fire, each with the job of its target."""
        found = [alert for alert in self._data("alerts")["alerts"] if alert["state"] == "firing"]
        return {(alert["labels"]["alertname"], alert["labels"].get("job", "")) for alert in found}


@contextmanager
def running_prometheus(port: int, targets: Mapping[str, int]) -> Iterator[PrometheusServer]:
    """Start one on a port, with the ports of the targets by the names of the example's jobs."""
    with tempfile.TemporaryDirectory(prefix="pm-") as name:
        folder = Path(name)
        (folder / "prometheus.yml").write_text(_example(targets))
        rules = (PROJECT / "docs/alerts.yml").read_text()
        # What rings after minutes of silence is left as it is.
        (folder / "alerts.yml").write_text(rules.replace("for: 1m\n", "for: 1s\n"))
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(
                [
                    install(PROMETHEUS),
                    f"--config.file={folder}/prometheus.yml",
                    f"--storage.tsdb.path={folder}/data",
                    f"--web.listen-address=127.0.0.1:{port}",
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=die_with(os.getpid()),  # noqa: PLW1509
            )
        found = PrometheusServer(f"http://127.0.0.1:{port}")
        try:
            eventually(lambda: _ready(process, port), seconds=_STARTS_WITHIN, about=(folder / "log").read_text)
            yield found
        finally:
            process.kill()
            process.wait()


def _example(targets: Mapping[str, int]) -> str:
    example = yaml.safe_load((PROJECT / "docs/prometheus.yml").read_text())
    example["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    for job in example["scrape_configs"]:
        job["static_configs"] = [{"targets": [f"127.0.0.1:{targets[job['job_name']]}"]}]
    return yaml.safe_dump(example)


def _ready(process: "subprocess.Popen[bytes]", port: int) -> bool:
    assert process.poll() is None
    try:
        return loopback.get(f"http://127.0.0.1:{port}/-/ready").status_code == 200
    except httpx.TransportError:
        return False
