"""A real TPM 2.0 without its chip: swtpm, that a test stops, starts, and measures something into."""

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.fixtures.eventually import eventually
from tests.outside.processes import die_with
from tests.outside.programs import Program, install

SWTPM = Program(("swtpm",), ("swtpm",))
TOOLS = Program(("tpm2_unseal",), ("tpm2-tools",))


class Tpm:
    """One TPM, which is asked directly: there is no resource manager before it."""

    def __init__(self, folder: Path) -> None:
        self._program = install(SWTPM)
        install(TOOLS)
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self.tcti = f"swtpm:path={folder}/socket"

    def start(self) -> None:
        """Turn it on, as after a boot that measured nothing yet."""
        for socket in self._folder.glob("socket*"):
            socket.unlink()
        sockets = (
            "--server",
            f"type=unixio,path={self._folder}/socket",
            "--ctrl",
            f"type=unixio,path={self._folder}/socket.ctrl",
        )
        self._process = subprocess.Popen(
            [
                *(str(self._program), "socket", "--tpm2", "--tpmstate", f"dir={self._folder}", *sockets),
                *("--flags", "not-need-init,startup-clear"),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=die_with(os.getpid()),  # noqa: PLW1509
        )
        eventually(lambda: len([*self._folder.glob("socket*")]), 2)

    def stop(self) -> None:
        """Turn it off."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(60)
            self._process = None

    def measure(self, what: str, pcr: int = 7) -> None:
        """Measure something into a PCR."""
        self.tool("pcrextend", f"{pcr}:sha256={hashlib.sha256(what.encode()).hexdigest()}")

    def tool(self, name: str, *words: str) -> str:
        """Run one of tpm2-tools."""
        done = self.try_tool(name, *words)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def try_tool(self, name: str, *words: str) -> "subprocess.CompletedProcess[str]":
        """Run one that may fail."""
        return subprocess.run(
            [f"tpm2_{name}", *words],
            cwd=self._folder,
            env={"PATH": os.environ["PATH"], "TPM2TOOLS_TCTI": self.tcti},
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=60,
        )


@contextmanager
def running_tpm() -> Iterator[Tpm]:
    """Make a TPM, turn it on, and measure a boot into it."""
    # Sockets have short folders of their own.
    folder = Path(tempfile.mkdtemp(prefix="tpm-"))
    tpm = Tpm(folder)
    try:
        tpm.start()
        tpm.measure("a boot")
        yield tpm
    finally:
        tpm.stop()
        shutil.rmtree(folder)
