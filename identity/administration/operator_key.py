"""The operator's key: made on the first start, and known to the api only by its hash."""

from pathlib import Path

from custody.kit import tokens
from custody.kit.db import Pool
from custody.worker.key_file import WrongKeyFile
from custody.worker.proofs import PLATFORM_KEY_MAC
from custody.worker.proven import PLATFORM
from custody.worker.sealing import Sealer, fields


async def register(pool: Pool, sealer: Sealer, path: Path, *, home: Path | None) -> None:
    """Let the key of the file be the unscoped one, and no other; `home`: the state folder, in production."""
    hashed, prefix = _read(path, home)
    mac = sealer.mac(PLATFORM_KEY_MAC, PLATFORM, fields(hashed, "*"))
    async with pool.acquire() as connection, connection.transaction():
        await connection.execute("DELETE FROM platform_keys WHERE from_file AND key_hash <> $1", hashed)
        await connection.execute(
            "INSERT INTO platform_keys (key_hash, prefix, from_file, mac) VALUES ($1, $2, true, $3) "
            "ON CONFLICT (key_hash) DO UPDATE SET from_file = true, mac = excluded.mac, scopes = NULL, "
            "revoked_at = NULL",
            hashed,
            prefix,
            mac,
        )


def _read(path: Path, home: Path | None) -> tuple[bytes, str]:
    """The hash of the key, and the prefix that it is recognised by."""
    if not path.exists():
        if home is not None:
            raise WrongKeyFile(
                f"SERVICE_ENV=production requires a platform key of your own: 32 to 256 characters in {path} (0600)."
            )
        path.touch(mode=0o600, exist_ok=False)
        path.write_text(tokens.new_api_key("pk") + "\n")
    if home is not None and home in path.parents:
        raise WrongKeyFile(
            "SERVICE_ENV=production refuses the platform key of the state folder; set SERVICE_PLATFORM_KEY_FILE "
            "to your own key file."
        )
    key = path.read_text(errors="replace").strip()
    if not 32 <= len(key) <= 256 or "\ufffd" in key:
        raise WrongKeyFile(f"The platform key in {path} must have 32 to 256 characters.")
    return tokens.digest(key), tokens.prefix_of(key)[:6]
