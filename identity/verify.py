"""`python -m identity.verify`: opens and checks everything under identity's key. It reads with identity's role."""

from custody.chains import built_in, families
from custody.kit import db, logs
from custody.worker import harden, verify
from custody.worker.keys import Keys
from custody.worker.sealing import Sealer
from identity import key, settings
from identity.rotation.registry import KINDS


async def _look() -> tuple[list[str], bool]:
    given = settings.read()
    pool = await db.open_pool_when_there(given.worker.database_url, size=2, seconds=verify.DATABASE_SECONDS)
    try:
        file = key.of(given.key_file)
        sealer = Sealer(file.read())
        await Keys(pool, file, sealer, "identity_fingerprint").begin()
        found = await verify.check(pool, sealer, KINDS)
    finally:
        await db.close_pool(pool)
    well = not found.broken
    end = (
        "Everything of people opens, and every MAC holds."
        if well
        else "Some values do NOT verify; the log above names the rows."
    )
    return [*found.lines(), end], well


def main() -> None:
    """The command."""
    logs.set_up()
    families.hand_in(built_in.LISTED)
    harden.harden("identity")
    verify.run(_look(), "identity key")


if __name__ == "__main__":
    main()
