"""Writes into compose.yaml which settings reach which container, by what each process reads: `make compose`."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

from api.settings import read as read_api
from custody.chains import built_in, families
from identity.settings import read as read_identity
from ops import connections, database_addresses, variables
from ops.settings import PROCESSES
from proxy_addon.settings import read as read_proxy
from scheduler.settings import read as read_scheduler
from signer.settings import read as read_signer

families.hand_in(built_in.LISTED)
COMPOSE: Final = Path(__file__).parents[2] / "compose.yaml"
BEGIN: Final = "# Written by `make compose`, from here"
END: Final = "# to here.\n"
READERS: Final[dict[str, Callable[[Mapping[str, str]], object]]] = {
    "signer": read_signer,
    "identity": read_identity,
    "api": read_api,
    "scheduler": read_scheduler,
    "proxy": read_proxy,
}
_ADDRESSES: Final = tuple(f"SERVICE_DATABASE_URL_{process.upper()}" for process in PROCESSES)
# By which it bounds the connections of each role.
_SIZES: Final = (connections.HOSTS, *(variable for variable, _ in connections.POOLS.values() if variable))
# What the file or an image says itself: places within a container, one process in each, and where that listens. On the
# machine its port is published at SERVICE_API_HOST and SERVICE_API_PORT, and the proxy's likewise.
FIXED: Final = frozenset(
    {
        *("SERVICE_ENV", "SERVICE_HOME", "SERVICE_PEER_UIDS"),
        *("SERVICE_SIGN_SOCKET", "SERVICE_REVEAL_SOCKET", "SERVICE_IDENTITY_SOCKET"),
        *("SERVICE_MASTER_KEY_FILE", "SERVICE_IDENTITY_KEY_FILE", "SERVICE_PLATFORM_KEY_FILE"),
        # Where there is an opener, a file beside this one says it.
        "SERVICE_MASTER_KEY_UNLOCK",
        *("SERVICE_PROXY_CA_FILE", "SERVICE_PROXY_CA_KEY_FILE"),
        *("SERVICE_API_HOST", "SERVICE_API_PORT", "SERVICE_PROXY_HOST", "SERVICE_PROXY_PORT"),
        *("SERVICE_API_WORKERS", "SERVICE_API_WORKER", "SERVICE_PROXY_WORKERS", "SERVICE_PROXY_WORKER"),
    }
)
# Without it nothing starts.
_NEEDED: Final = {"SERVICE_PUBLIC_URL": "the https address under which people reach the API"}
# Of secrets beside the files of settings.
_SECRETS: Final = {"signer": ["platform_key"], "identity": ["platform_key"]}


class _Asked(dict[str, str]):
    """An environment that notes what is looked for in it."""

    def __init__(self, given: Mapping[str, str]) -> None:
        super().__init__(given)
        self.names: set[str] = set()

    def get(self, name: str, default: str = "") -> str:  # type: ignore[override]
        self.names.add(name)
        return super().get(name, default)

    def __getitem__(self, name: str) -> str:
        self.names.add(name)
        return super().__getitem__(name)

    def __contains__(self, name: object) -> bool:
        self.names.add(str(name))
        return super().__contains__(name)


def read_by(process: str) -> set[str]:
    """Every variable that a container's process looks for, whatever else is set."""
    addresses = dict.fromkeys(_ADDRESSES, "postgresql://u:p@h/d")
    pairs = {name: "x" for pair in variables.PAIRS for name in pair}
    names = {database_addresses.CA_FILE}
    for given in (addresses, addresses | pairs):
        asked = _Asked(given)
        READERS[process](asked)
        names |= asked.names & variables.NAMES
    if process in ("api", "scheduler"):
        # As the supervisor hands them out: the workers read the table of chains, and call no node.
        names |= {f"SERVICE_RPC_URL_{chain.id}" for chain in built_in.CHAINS}
    return names


READ: Final = {process: read_by(process) for process in READERS} | {
    "migrate": {"SERVICE_DATABASE_URL", database_addresses.CA_FILE, *_ADDRESSES, *_SIZES}
}


def files_of(service: str) -> list[str]:
    """The variables a service reads that name a file to be read: it is mounted, under this name."""
    kinds = {name: variables.KNOWN[name].name for name in READ[service] & variables.KNOWN.keys()}
    return sorted(name for name, kind in kinds.items() if kind in ("file", "certificates"))


def _lines() -> Iterator[str]:
    for service, names in READ.items():
        files = files_of(service)
        yield f"x-{service}: &{service}"
        for name in sorted(names - FIXED, key=_in_order):
            if name in files:
                yield f'  {name}: "${{{name}:+/run/secrets/{name}}}"'
            elif name == "SERVICE_DATABASE_URL":
                yield f'  {name}: "${{{name}:-postgresql://custody:${{POSTGRES_PASSWORD}}@postgres:5432/custody}}"'
            else:
                yield f'  {name}: "${{{name}:{"?" + _NEEDED[name] if name in _NEEDED else "-"}}}"'
        yield f"x-{service}-files: &{service}-files"
        yield from (f"  - {name}" for name in [*_SECRETS.get(service, []), *files])
        yield ""
    yield "x-files: &files"
    for name in sorted({name for service in READ for name in files_of(service)}):
        yield f'  {name}: {{file: "${{{name}:-/dev/null}}"}}'


def _in_order(name: str) -> tuple[str, int]:
    """By the alphabet, and chains by their numbers."""
    text = name.rstrip("0123456789")
    return text, int(name.removeprefix(text) or 0)


def rewrite(text: str) -> str:
    """The file with what is generated as it should be."""
    head, rest = text.split(BEGIN)
    said = rest.split("\n", 1)[0]
    return f"{head}{BEGIN}{said}\n" + "\n".join(_lines()) + "\n" + END + rest.split(END, 1)[1]


if __name__ == "__main__":
    COMPOSE.write_text(rewrite(COMPOSE.read_text()))
