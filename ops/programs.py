"""The start of each process: its own uid, its own log, and only what it needs in its environment."""

import os
import stat
from pathlib import Path

import msgspec

from custody.kit import authority
from custody.kit import environment as read
from custody.kit.environment import BadSetting
from ops import children, places, readable_files
from ops.runtime import Python
from ops.settings import PROCESSES, Settings

# Of each log two such pieces are kept: the running one and the one before it.
MAX_LOG_BYTES = 10 * 2**20
_COPIED_AT_ONCE = 2**20
# Each lets what runs come to its end, and has a little longer for it than it allows itself.
# Processes that go on serving for a while once they are told to stop.
_DRAINING = {"api": "SERVICE_API_DRAIN_SECONDS", "proxy": "SERVICE_PROXY_DRAIN_SECONDS"}
_STOP_SECONDS = {"api": 27.0, "proxy": 15.0, "scheduler": 25.0, "signer": 15.0, "identity": 15.0}
_KEY_FILES = {"signer": "SERVICE_MASTER_KEY_FILE", "identity": "SERVICE_PLATFORM_KEY_FILE"}
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
        found.pop(_WORKER.get(process, ""), None)
        if process in {"signer", "proxy"}:
            found["SERVICE_REVEAL_SOCKET"] = str(self.socket("reveal"))
        if process not in {"proxy", "identity"}:
            found["SERVICE_SIGN_SOCKET"] = str(self.socket("sign"))
        if process in {"identity", "api", "scheduler"}:
            found["SERVICE_IDENTITY_SOCKET"] = str(self.socket("identity"))
        if process in {"signer", "identity"}:
            found["SERVICE_PEER_UIDS"] = self._peer_uids()
            found["SERVICE_IDENTITY_KEY_FILE"] = str(self._settings.identity_key_file)
            found |= {name: str(file) for name, file in self.key_file(process).items()}
        if process == "proxy":
            found |= {name: str(file) for name, file in self._authority().items()}
            # The library's own assertions cost a fifth of its speed; no check of ours is one.
            found["PYTHONOPTIMIZE"] = "1"
        if uid is not None:
            # It may not write beside the sources; without a cache every start would compile everything again.
            found["PYTHONPYCACHEPREFIX"] = str(self._home.file(process, "compiled"))
            found["HOME"] = str(self._home.file(process))
            readable_files.insist(process, found, uid)
        command, seconds = (str(python.program), "-m", module), _STOP_SECONDS.get(process, 10.0)
        if process in _DRAINING:
            seconds += read.integer(self._settings.environment, _DRAINING[process], 0, high=60)
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
        """Name where a worker listens: `sign`, for the proxy `reveal`, and `identity`, which has a folder of its own.

        Its callers can reach it; who may speak there is decided by their uid.
        """
        worker, folder = ("identity", "run-identity") if name == "identity" else ("signer", "run")
        uid = self._home.uid_of(worker)
        run = places.socket_folder(self._home.file(folder), owner=uid, mode=0o700 if uid is None else 0o711)
        return run / f"{name}.sock"

    def log(self, name: str) -> Path:
        """A process' log; one that has grown large is put aside."""
        log = self._home.file("log", f"{name}.log")
        turn(log)
        return log

    def turn_logs(self) -> None:
        """Put aside every log that has grown large; the processes go on writing."""
        for log in self._home.file("log").glob("*.log"):
            turn(log)

    def _peer_uids(self) -> str:
        """The uids under which the workers' callers run, for their peer tables."""
        uids = {name: self._home.uid_of(name) for name in PROCESSES if name not in {"signer", "identity"}}
        return ",".join(f"{name}:{os.geteuid() if uid is None else uid}" for name, uid in uids.items())

    def key_file(self, process: str) -> dict[str, Path]:
        """Name where the signer and identity read and, the first time, write the key file that is theirs alone.

        They may not write into a state folder that belongs to root, so their own folders hold them and a link in the
        state folder shows where.
        """
        settings, uid = self._settings, self._home.uid_of(process)
        variable, file = _KEY_FILES[process], getattr(settings, _KEY_FILES[process].removeprefix("SERVICE_").lower())
        if uid is None:
            return {variable: file}
        if file.parent.resolve() != self._home.path:
            _insist_on_owner(process, variable, file, uid)
            return {variable: file}
        # In production identity refuses this very path, because only a generated key lies there.
        if settings.production and process == "identity":
            return {variable: file}
        if file.is_file() and not file.is_symlink():
            os.chown(file, uid, uid)
            return {variable: file}
        if not file.is_symlink():
            file.symlink_to(Path(process, file.name))
        return {variable: self._home.file(process, file.name)}

    def _authority(self) -> dict[str, Path]:
        """Find the proxy's certificate authority, made here if there is none yet.

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


def turn(log: Path, most: int = MAX_LOG_BYTES) -> None:
    """Put a log of more than `most` bytes aside as `.log.1`, below its running writer.

    Its writer holds the file itself open for appending, so it is copied and emptied, not renamed. A line that is
    written between the two is lost; logs are for people, what must be kept is in the audit trail.
    """
    if not log.exists() or log.stat().st_size <= most:
        return
    with log.open("r+b") as grown, log.with_suffix(".log.1").open("wb") as kept:
        os.fchmod(kept.fileno(), stat.S_IMODE(os.fstat(grown.fileno()).st_mode))
        # Of one that grew far beyond, between two looks, the end says what happened.
        grown.seek(max(0, log.stat().st_size - most))
        while piece := grown.read(_COPIED_AT_ONCE):
            kept.write(piece)
        grown.truncate(0)


def _insist_on_owner(process: str, variable: str, file: Path, uid: int) -> None:
    """A file of the operator's is never changed by us; the process could neither read nor make it otherwise."""
    if not file.exists() and file.parent.stat().st_uid != uid:
        raise BadSetting(
            variable, f"{process} cannot create {file}: create it, then `chown {uid} {file}`, or the folder"
        )
    if file.exists() and file.stat().st_uid != uid:
        raise BadSetting(variable, _unreadable(process, file, uid))


def _unreadable(process: str, file: Path, uid: int) -> str:
    return f"the {process} cannot read {file}: `chown {uid} {file} && chmod 0600 {file}`"
