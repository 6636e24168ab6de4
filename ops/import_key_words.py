"""The words of `custody import-key`, without what it imports: other commands pay for none of it."""

from pathlib import Path
from typing import Any


def declare(commands: Any) -> None:
    """The words of the command."""
    about = "import a private key into an agent: asked for without showing it, and sealed to the signer"
    top = commands.add_parser("import-key", help=about, description=about)
    top.add_argument("agent", metavar="AGENT", help="the agent whose wallet it becomes; it must never have signed")
    top.add_argument("--chain", required=True, choices=("evm", "solana"))
    top.add_argument("--service", default="http://127.0.0.1:3200", metavar="URL", help="the service's address")
    jwks = "the JWK set that you trust; without it, what the service shows now"
    top.add_argument("--jwks", type=Path, metavar="FILE", help=jwks)
