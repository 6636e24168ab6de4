"""The table of chains of a first try: it names the play USDC of the local chain, so that sentences say "25 USDC"."""

from pathlib import Path

from ops.local_chain import play_usdc
from ops.settings import Settings

VARIABLE = "SERVICE_CHAINS_FILE"
_TEXT = f"""\
# The chains of this installation in development (docs/environment.md, SERVICE_CHAINS_FILE); yours to change.
[[chains]]
id = 31337
tokens = [{{ address = "0x{play_usdc.ADDRESS.hex()}", symbol = "{play_usdc.SYMBOL}", decimals = {play_usdc.DECIMALS} }}]
"""


def ensure(settings: Settings, home: Path) -> None:
    """Write the table unless it is there, and have every process read it; one that the operator named stays theirs."""
    if settings.production or settings.environment.get(VARIABLE, "").strip():
        return
    file = home / "chains.toml"
    if not file.exists():
        file.write_text(_TEXT)
        # Processes of other uids read it, and it holds nothing that anybody may not know.
        file.chmod(0o644)
    settings.environment[VARIABLE] = str(file)
