"""How each process is started: its own uid, its own log, and only what it needs in its environment. Decisions 2."""

import os
from pathlib import Path

import msgspec

from custody.cli import children, places
from custody.cli.runtime import Python
from custody.cli.settings import PROCESSES, Settings
from custody.kit import authority
from custody.kit import environment as read
from custody.kit.environment import BadSetting

_KEEP_LOG_BYTES = 10 * 2**20
# Each lets what runs come to its end, and has a little longer for it than it allows itself.
_STOP_SECONDS = {"api": 27.0, "proxy": 15.0, "scheduler": 25.0, "signer": 15.0}
_WORKER = {"api": "SERVICE_API_WORKER", "proxy": "SERVICE_PROXY_WORKER"}


class Programs:
    """The programs of one state folder."""

    def __init__(self, settings: Settings, home: places.Home) -> None:
        self._settings, self._home = settings, home

    def program(self, process: str, module: str, python: Python) -> children.Program:
        """One process."""
        uid = self._home.uid_of(process)
        found = {**children.environment_for(process, self._settings.environment), **python.environment}
        found["SERVICE_HOME"] = str(self._home.path)
        if process in {"signer", "proxy"}:
            found["SERVICE_REVEAL_SOCKET"] = str(self.socket("reveal"))
        if process != "proxy":
            found["SERVICE_SIGN_SOCKET"] = str(self.socket("sign"))
        if process == "signer":
            found["SERVICE_PEER_UIDS"] = self._peer_uids()
            found |= {name: str(file) for name, file in self._key_files().items()}
        if process == "proxy":
            found |= {name: str(file) for name, file in self._authority().items()}
            # The library's own assertions cost a fifth of its speed; no check of ours is one.
            found["PYTHONOPTIMIZE"] = "1"
        if uid is not None:
            # It may not write beside the sources; without a cache every start would compile everything again.
            found["PYTHONPYCACHEPREFIX"] = str(self._home.file(process, "compiled"))
            found["HOME"] = str(self._home.file(process))
        command, seconds = (str(python.program), "-m", module), _STOP_SECONDS.get(process, 10.0)
        if process == "api":
            seconds += read.integer(self._settings.environment, "SERVICE_API_DRAIN_SECONDS", 0, high=60)
        return children.Program(process, command, found, self.log(process), uid, seconds)

    def workers(self, process: str, module: str, python: Python) -> list[children.Program]:
        """One process, or as many as its workers: the first bears the process' name, the others a number too."""
        count = self._settings.workers.get(process, 1)
        if count == 1:
            return [self.program(process, module, python)]
        found = []
        for index in range(count):
            program = self.program(process, module, python)
            name = f"{process}-{index}" if index else process
            environment = {**program.environment, _WORKER[process]: str(index)}
            found.append(msgspec.structs.replace(program, name=name, environment=environment, log=self.log(name)))
        return found

    def socket(self, name: str) -> Path:
        """Where the signer listens, in a folder that its callers can reach: `sign`, and for the proxy `reveal`."""
        uid = self._home.uid_of("signer")
        run = places.socket_folder(self._home.file("run"), owner=uid, mode=0o700 if uid is None else 0o711)
        return run / f"{name}.sock"

    def log(self, name: str) -> Path:
        """A process' log; one that has grown large is put aside."""
        log = self._home.file("log", f"{name}.log")
        if log.exists() and log.stat().st_size > _KEEP_LOG_BYTES:
            log.replace(log.with_suffix(".log.1"))
        return log

    def _peer_uids(self) -> str:
        """The uids under which the signer's callers run, for its peer table."""
        uids = {name: self._home.uid_of(name) for name in PROCESSES if name != "signer"}
        return ",".join(f"{name}:{os.geteuid() if uid is None else uid}" for name, uid in uids.items())

    def _key_files(self) -> dict[str, Path]:
        """Where the signer reads and, the first time, writes its key files.

        It may not write into a state folder that belongs to root, so its own folder holds them and a link in the
        state folder shows where.
        """
        found = {}
        settings = self._settings
        for name, file in (("MASTER", settings.master_key_file), ("PLATFORM", settings.platform_key_file)):
            variable, uid = f"SERVICE_{name}_KEY_FILE", self._home.uid_of("signer")
            found[variable] = file
            if uid is None:
                continue
            if file.parent.resolve() != self._home.path:
                _insist_on_owner(variable, file, uid)
                continue
            # In production the signer refuses this very path, because only a generated key lies there.
            if settings.production and name == "PLATFORM":
                continue
            if file.is_file() and not file.is_symlink():
                os.chown(file, uid, uid)
                continue
            found[variable] = self._home.file("signer", file.name)
            if not file.is_symlink():
                file.symlink_to(Path("signer", file.name))
        return found

    def _authority(self) -> dict[str, Path]:
        """Where the proxy reads its certificate authority, made here if there is none yet.

        The proxy writes neither file, so both may lie in the state folder itself: the certificate for everybody who
        is to trust it, the key for the proxy's uid alone.
        """
        uid = self._home.uid_of("proxy")
        certificate, key = (
            file.parent.resolve() / file.name
            for file in (self._settings.proxy_ca_file, self._settings.proxy_ca_key_file)
        )
        authority.ensure(certificate, key, uid)
        if uid is not None and key.stat().st_uid != uid:
            # An earlier start in a folder that others could not enter made it ours.
            if key.is_symlink() or key.parent != self._home.path:
                raise BadSetting("SERVICE_PROXY_CA_KEY_FILE", _unreadable("proxy", key, uid))
            os.chown(key, uid, uid)
        return {"SERVICE_PROXY_CA_FILE": certificate, "SERVICE_PROXY_CA_KEY_FILE": key}


def _insist_on_owner(variable: str, file: Path, uid: int) -> None:
    """A file of the operator's is never changed by us; the signer could neither read nor make it otherwise."""
    if not file.exists() and file.parent.stat().st_uid != uid:
        raise BadSetting(variable, f"the signer cannot make {file}: make it, then `chown {uid} {file}`, or the folder")
    if file.exists() and file.stat().st_uid != uid:
        raise BadSetting(variable, _unreadable("signer", file, uid))


def _unreadable(process: str, file: Path, uid: int) -> str:
    return f"the {process} cannot read {file}: `chown {uid} {file} && chmod 0600 {file}`"
