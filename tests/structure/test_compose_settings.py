"""Every setting that stands in .env reaches the containers of the processes that read it, and no other one."""

from typing import Any

import msgspec
import pytest

from custody.kit import opener_settings
from ops import variables
from tests.fixtures.images import compose, stages
from tests.outside.processes import PROJECT
from tests.structure.compose_settings import COMPOSE, FIXED, READ, READERS, files_of, rewrite

NEEDED = {"POSTGRES_PASSWORD": "p" * 20, "SERVICE_PUBLIC_URL": "https://custody.example.com"}
UNSET = compose(NEEDED)
ALL = {name for names in READ.values() for name in names}
SET = compose(NEEDED | {name: f"set-{name}" for name in ALL})
OPENER = PROJECT / "compose.opener.yaml"
OWN = PROJECT / "compose.own-postgres.yaml"
ADDRESS = "postgresql://owner:pw@db.example.com/custody?sslmode=verify-full"
# For commands within a container, and for the operator's.
NOT_OF_A_PROCESS = {
    *("SERVICE_SESSION", "SERVICE_URL", "SERVICE_PROXY_URL", "SERVICE_KEY", "SERVICE_KEY_FILE"),
    *("SERVICE_AGENT_ID", "SERVICE_AGENT_TOKEN", "SERVICE_AGENT_TOKEN_FILE"),
    *("SERVICE_MCP_PORT", "SERVICE_MCP_HOST", "SERVICE_MCP_ALLOWED_HOSTS"),
    # The supervisor's: a container has one process.
    "SERVICE_PROXY_WORKERS",
    # What opens a sealed key file gets by its kind.
    *opener_settings.RESERVED,
    # And its uid is the image's.
    "SERVICE_UID_BASE",
    # The opener's, and of a person beside it.
    "SERVICE_MASTER_KEY_SOURCE",
}


def environment(file: dict[str, Any], service: str) -> dict[str, str]:
    return {name: str(value) for name, value in file["services"][service]["environment"].items()}


def test_the_file_has_what_the_processes_read() -> None:
    text = COMPOSE.read_text()

    assert text == rewrite(text), "run `make compose`"


def test_every_variable_of_the_page_is_read_by_somebody_or_a_clients() -> None:
    assert variables.NAMES - ALL == NOT_OF_A_PROCESS


@pytest.mark.parametrize("service", READ)
def test_a_setting_reaches_who_reads_it_and_nobody_else(service: str) -> None:
    found = environment(SET, service)

    wanted = {name: f"set-{name}" for name in READ[service] - FIXED}
    wanted |= {name: f"/run/secrets/{name}" for name in files_of(service)}
    assert {name: found.get(name) for name in wanted} == wanted
    # The rest is of the file itself.
    assert set(found) - set(wanted) <= FIXED
    mounted = SET["services"][service]["secrets"]
    assert [name for name in mounted if name != "platform_key"] == files_of(service)
    assert {SET["secrets"][name]["file"] for name in files_of(service)} == {f"set-{one}" for one in files_of(service)}


@pytest.mark.parametrize("service", READ)
def test_an_absent_setting_stays_unset(service: str) -> None:
    empty = READ[service] - FIXED - {"SERVICE_PUBLIC_URL", "SERVICE_DATABASE_URL"}

    assert {environment(UNSET, service)[name] for name in empty} == {""}
    assert {UNSET["secrets"][name]["file"] for name in files_of(service)} <= {"/dev/null"}


@pytest.mark.parametrize("process", READERS)
def test_an_empty_value_is_as_good_as_none(process: str) -> None:
    """Try what every reader makes of a container in which nothing is set."""
    address = {f"SERVICE_DATABASE_URL_{process.upper()}": "postgresql://u:p@h/d"}
    given = environment(UNSET, process) | stages()[process].environment | address

    with_them = READERS[process](given)
    without = READERS[process]({name: value for name, value in given.items() if value})

    assert _comparable(with_them) == _comparable(without)


def _comparable(settings: Any) -> Any:
    """Of tables that cannot be compared, what is in them."""
    if isinstance(settings, msgspec.Struct):
        settings = msgspec.structs.asdict(settings)
    elif type(settings).__module__.startswith("custody."):
        settings = vars(settings)
    return {name: _comparable(one) for name, one in settings.items()} if isinstance(settings, dict) else settings


def test_every_fixed_setting_is_said_by_the_file_or_an_image() -> None:
    said = {name for service in READ for name in environment(UNSET, service)}
    said |= {name for stage in stages().values() for name in stage.environment}
    ports = {f"SERVICE_{one}_{what}" for one in ("API", "PROXY") for what in ("HOST", "PORT", "WORKER", "WORKERS")}

    # In the state folder, where nothing says otherwise; and what only the file for an opener says.
    assert FIXED - said - ports == {"SERVICE_IDENTITY_KEY_FILE", "SERVICE_MASTER_KEY_UNLOCK"}
    published = [SET["services"][one]["ports"] for one in ("api", "proxy")]
    assert published == [
        [f"set-SERVICE_{one}_HOST:set-SERVICE_{one}_PORT:{port}"] for one, port in (("API", 3200), ("PROXY", 8080))
    ]


def test_secrets_reach_nobody_who_has_no_use_for_them() -> None:
    holders = {name for name in SET["services"] if NEEDED["POSTGRES_PASSWORD"] in str(UNSET["services"][name])}
    assert holders == {"postgres", "migrate"}
    # Every name in a file would reach every process that is given the file.
    assert {name: one["env_file"] for name, one in SET["services"].items() if "env_file" in one} == {
        "api": [{"path": "api.env", "required": False}]
    }


def test_images_are_told_which_commit_they_are_of() -> None:
    given = compose(NEEDED | {"COMMIT": "c" * 40})
    for name in READ:
        assert UNSET["services"][name]["build"]["args"] == {"COMMIT": "unknown"}
        assert given["services"][name]["build"]["args"] == {"COMMIT": "c" * 40}
    assert "COMMIT=unknown" in stages()["runtime"].all("ARG")


def test_beside_an_own_postgres_there_is_none_and_everybody_reaches_the_own() -> None:
    file = compose(NEEDED | {"SERVICE_DATABASE_URL": ADDRESS, "SERVICE_DATABASE_CA_FILE": "./ca.pem"}, OWN)

    assert (set(file["services"]), "postgres" in file["volumes"]) == (set(READ), False)
    assert environment(file, "migrate")["SERVICE_DATABASE_URL"] == ADDRESS
    for name, service in file["services"].items():
        assert "postgres" not in service.get("depends_on", {})
        assert environment(file, name)["SERVICE_DATABASE_CA_FILE"] == "/run/secrets/SERVICE_DATABASE_CA_FILE"
        # Else it would have no way to the database.
        assert any(not (file["networks"][network] or {}).get("internal") for network in service["networks"]), name
    assert file["secrets"]["SERVICE_DATABASE_CA_FILE"]["file"] == "./ca.pem"
    # Without the second file there is one, and signer and identity have no way out.
    assert SET["services"]["signer"]["networks"] == SET["services"]["identity"]["networks"] == ["inside"]
    assert set(SET["services"]["signer"]["depends_on"]) == {"postgres", "migrate"}


def test_an_opener_has_the_head_and_a_way_out_and_the_signer_the_key_and_none() -> None:
    file = compose(NEEDED | {"SERVICE_MASTER_KEY_SOURCE": "awskms", "OPENER_KIND": "aws"}, OPENER)
    opener, signer = file["services"]["opener"], file["services"]["signer"]
    folder = environment(file, "opener")["SERVICE_MASTER_KEY_UNLOCK"]

    assert (opener["networks"], signer["networks"]) == (["outside"], ["inside"])
    assert environment(file, "signer")["SERVICE_MASTER_KEY_UNLOCK"] == folder
    assert (f"unlock:{folder}" in opener["volumes"], f"unlock:{folder}:ro" in signer["volumes"]) == (True, True)
    # Of the signer's volumes, which hold the sealed keys among others, it has that one.
    theirs = [{mount.split(":")[0] for mount in one["volumes"]} for one in (opener, signer)]
    assert theirs[0] & theirs[1] == {"unlock"}
    assert theirs[0] - theirs[1] == {"./opener"}
    assert not opener.get("secrets")
    assert opener["user"] == signer["user"] == stages()["opener"].user
    assert opener["build"]["args"] == {"COMMIT": "unknown", "KIND": "aws"}
    assert "SERVICE_MASTER_KEY_SOURCE" not in environment(file, "signer")
    others = [name for name, one in file["services"].items() if "unlock:" in str(one.get("volumes"))]
    assert sorted(others) == ["opener", "signer"]


def test_the_folder_of_the_key_is_in_memory_and_the_signers_alone() -> None:
    file = compose(NEEDED | {"SERVICE_MASTER_KEY_SOURCE": "awskms"}, OPENER)
    made = file["volumes"]["unlock"]["driver_opts"]
    options = made.pop("o").split(",")

    assert made == {"type": "tmpfs", "device": "tmpfs"}
    uid, gid = file["services"]["signer"]["user"].split(":")
    assert {"mode=0700", f"uid={uid}", f"gid={gid}", "noexec"} <= set(options)
    opener = file["services"]["opener"]
    assert opener["memswap_limit"] == opener["mem_limit"]


def test_an_opener_is_held_as_tightly_as_any_other_container() -> None:
    file = compose(NEEDED | {"SERVICE_MASTER_KEY_SOURCE": "people"}, OPENER)
    opener, other = file["services"]["opener"], file["services"]["identity"]

    same = ("read_only", "cap_drop", "security_opt", "ulimits", "logging", "restart")
    assert {name: opener[name] for name in same} == {name: other[name] for name in same}
    assert "ports" not in opener


def test_a_deployment_without_an_opener_has_nothing_of_it() -> None:
    assert "opener" not in SET["services"]
    with pytest.raises(AssertionError, match="SERVICE_MASTER_KEY_SOURCE is not set"):
        compose(NEEDED, OPENER)
