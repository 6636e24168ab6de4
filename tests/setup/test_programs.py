"""Several api workers are several processes on one port, each with its number and its log. Decisions 2."""

from custody.cli import places
from custody.cli.programs import Programs
from custody.cli.runtime import python_for
from custody.cli.settings import load


def test_one_worker_is_one_process_without_a_number(home: places.Home) -> None:
    (only,) = Programs(load({"SERVICE_HOME": str(home.path)}), home).workers("api", "api", python_for(home))

    assert only.name == "api"
    assert "SERVICE_API_WORKER" not in only.environment


def test_each_of_several_workers_has_a_number_and_a_log(home: places.Home) -> None:
    settings = load({"SERVICE_HOME": str(home.path), "SERVICE_API_WORKERS": "3"})

    found = Programs(settings, home).workers("api", "api", python_for(home))

    assert [program.name for program in found] == ["api", "api-1", "api-2"]
    assert [program.environment["SERVICE_API_WORKER"] for program in found] == ["0", "1", "2"]
    assert {program.environment["SERVICE_API_WORKERS"] for program in found} == {"3"}
    assert len({program.log for program in found}) == 3


def test_only_the_api_has_workers(home: places.Home) -> None:
    settings = load({"SERVICE_HOME": str(home.path), "SERVICE_API_WORKERS": "3"})

    assert len(Programs(settings, home).workers("signer", "signer", python_for(home))) == 1
