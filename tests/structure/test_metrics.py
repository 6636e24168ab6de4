"""Metrics survive their way into Prometheus, and what we ship asks for those that there are."""

import re

from ops.settings import load
from tests.fixtures import metrics
from tests.fixtures.each import each
from tests.outside.processes import PROJECT

# What Prometheus adds to every series. Our label of the same name is renamed, and a reader sees the other one.
TARGETS = {"job", "instance"}
OVERWRITTEN = re.compile(r"job|instance|exported_.*|__.*")
DECLARED = metrics.declared_series()
CELLS = [
    [re.findall(r"`([^`]+)`", cell) for cell in line.strip("|").split("|")]
    for line in (PROJECT / "docs/operate.md").read_text().split("\n## Monitor\n")[1].split("\n## ")[0].splitlines()
    if line.startswith("| `")
]


def test_the_metrics_of_every_process_are_found() -> None:
    assert {name.split("_")[1] for name in DECLARED} >= {"http", "signer", "identity", "job", "webhook", "proxy"}
    assert DECLARED["custody_job_seconds_bucket"] == {"task", "le"}


@each("name", DECLARED)
def test_none_of_our_labels_is_one_that_prometheus_overwrites(name: str) -> None:
    added = {label for job in metrics.scrapes() for one in job["static_configs"] for label in one.get("labels", {})}

    assert [label for label in DECLARED[name] if OVERWRITTEN.fullmatch(label) or label in added] == []


@each("expression", metrics.expressions())
def test_an_expression_asks_for_metrics_and_labels_that_there_are(expression: str) -> None:
    names, labels = metrics.metrics_in(expression)

    assert names - set(DECLARED) == set()
    known = TARGETS.union(*(DECLARED[name] for name in names))
    assert labels - known == set()


@each(("expression", "legend"), metrics.panels())
def test_a_legend_names_labels_that_its_expression_keeps(expression: str, legend: str) -> None:
    names, _ = metrics.metrics_in(expression)
    kept = TARGETS.union(*(DECLARED[name] for name in names))
    if by := re.search(r"by \(([^)]*)\)", expression):
        kept = {label.strip() for label in by[1].split(",")}

    assert set(re.findall(r"\{\{(\w+)\}\}", legend)) <= kept


@each("rule", metrics.rules(), ids=lambda rule: rule["alert"])
def test_a_rule_keeps_apart_what_the_operator_keeps_apart(rule: dict[str, str]) -> None:
    # `by` drops every label that it does not name: a deployment that is well would hide one that is not.
    assert re.search(r"\bby \(", rule["expr"]) is None
    assert re.search(r"\b(?:sum|max|min|avg|count)\s*\(", rule["expr"]) is None


def test_the_scrape_example_has_the_names_of_the_rules_and_the_default_ports() -> None:
    named = {name for rule in metrics.rules() for name in re.findall(r'job="([^"]+)"', rule["expr"])}
    listening = [f"{host}:{port}" for _, host, port in load({}).metrics_ports]

    assert {job["job_name"] for job in metrics.scrapes()} == named
    assert sorted(job["static_configs"][0]["targets"][0] for job in metrics.scrapes()) == sorted(listening)


def test_the_page_lists_every_metric_with_its_labels() -> None:
    listed = {name: set(cells[1]) for cells in CELLS for name in cells[0] if name.startswith("custody_")}

    assert listed == {name: set(labels) for name, labels in metrics.families().items()}


def test_the_page_lists_every_alert() -> None:
    listed = [name for cells in CELLS for name in cells[0] if name.startswith("Custody")]

    assert sorted(listed) == sorted({rule["alert"] for rule in metrics.rules()})
