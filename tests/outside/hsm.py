"""A real PKCS#11 token without its hardware: SoftHSM, with the tool of OpenSC and its library that notes each call."""

import os
import subprocess
from pathlib import Path

from tests.outside.programs import Program, install

SOFTHSM = Program(("softhsm2-util",), ("softhsm2",))
OPENSC = Program(("pkcs11-tool",), ("opensc",))
_LIBRARIES = ("/usr/lib/softhsm/libsofthsm2.so", "/usr/lib64/softhsm/libsofthsm.so", "/usr/lib64/pkcs11/libsofthsm2.so")
_SPIES = (
    "/usr/lib/x86_64-linux-gnu/pkcs11-spy.so",
    "/usr/lib/aarch64-linux-gnu/pkcs11-spy.so",
    "/usr/lib64/pkcs11-spy.so",
)
PIN = "384-a-pin-5512"


class Hsm:
    """A folder of tokens."""

    def __init__(self, folder: Path) -> None:
        install(SOFTHSM)
        install(OPENSC)
        self._folder = folder
        (folder / "tokens").mkdir()
        self.configuration = folder / "softhsm2.conf"
        self.configuration.write_text(f"directories.tokendir = {folder}/tokens\nobjectstore.backend = file\n")
        self.library = next(path for path in _LIBRARIES if Path(path).exists())
        self.pin_file = folder / "pin"
        self.pin_file.write_text(PIN + "\n")
        self.pin_file.chmod(0o600)

    @property
    def environment(self) -> dict[str, str]:
        """Variables of SoftHSM and of its tools."""
        return {"PATH": os.environ["PATH"], "SOFTHSM2_CONF": str(self.configuration), "PIN": PIN}

    @property
    def settings(self) -> dict[str, str]:
        """Settings of an opener."""
        return {
            "SOFTHSM2_CONF": str(self.configuration),
            "SERVICE_PKCS11_MODULE": self.library,
            "SERVICE_PKCS11_PIN_FILE": str(self.pin_file),
        }

    @property
    def spied(self) -> dict[str, str]:
        """The same, with every call written down."""
        spy = next(path for path in _SPIES if Path(path).exists())
        watched = {"PKCS11SPY": self.library, "PKCS11SPY_OUTPUT": str(self._folder / "calls")}
        return self.settings | watched | {"SERVICE_PKCS11_MODULE": spy}

    def count_calls(self, function: str) -> int:
        """Count the calls of a function by those who had them written down."""
        calls = self._folder / "calls"
        return calls.read_text(errors="replace").count(f": {function}\n") if calls.exists() else 0

    def make_token(self, label: str) -> None:
        """Make a token."""
        pins = ("--pin", PIN, "--so-pin", "99-an-officer-99")
        self._run("softhsm2-util", "--init-token", "--free", "--label", label, *pins)

    def make_key(self, token: str, label: str, *words: str, bits: int = 256) -> None:
        """Make an AES key in a token; `words` are more of pkcs11-tool's."""
        self.tool(token, "--keygen", "--key-type", f"AES:{bits // 8}", "--label", label, *(words or ("--sensitive",)))

    def log_in(self, token: str) -> None:
        """Log in by hand, with the right PIN."""
        self.tool(token, "--list-objects")

    def flags(self) -> str:
        """List the tokens with the flags that the module gives them."""
        return self._run("pkcs11-tool", "--module", self.library, "--list-slots")

    def tool(self, token: str, *words: str) -> str:
        """Run pkcs11-tool at a token, logged in."""
        return self._run(
            "pkcs11-tool", "--module", self.library, "--token-label", token, "--login", "--pin", "env:PIN", *words
        )

    def _run(self, *command: str) -> str:
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout
