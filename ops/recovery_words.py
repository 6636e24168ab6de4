"""The words of the commands for keys and recovery, without what these import: other commands pay for none of it."""

from pathlib import Path
from typing import Any


def declare(commands: Any) -> None:
    """`keys`, `backup` and `restore`."""
    _declare_keys(commands)
    _declare_backup(commands)
    _declare_restore(commands)


def _declare_keys(commands: Any) -> None:
    top = commands.add_parser("keys", help="rotate the master key, and list its versions")
    acts = top.add_subparsers(dest="act", required=True, metavar="status|rotate|lock|holders|unlock-file")
    acts.add_parser("status", help="show what each version seals")
    rotate = acts.add_parser("rotate", help="re-seal everything with a new version; continues where it was interrupted")
    how = rotate.add_mutually_exclusive_group()
    how.add_argument("--prepare", action="store_true", help="only add the version, to copy it to other hosts first")
    how.add_argument("--new", action="store_true", help="start another version although an older one is still in use")
    how.add_argument("--retire", action="store_true", help="remove unused versions from the file")
    _declare_holders(acts)
    at_once = "with --retire: end the sessions and codes that only time would end"
    rotate.add_argument("--at-once", action="store_true", help=at_once)


def _declare_holders(acts: Any) -> None:
    no_recovery = "accept that nobody but a provider can open the file"
    locking = acts.add_parser("lock", help="seal the master key file, so that a holder must open it at each start")
    holder = "KIND or KIND:NAME, such as awskms:ARN, people:2/3 or recovery; may be repeated"
    locking.add_argument("--to", action="append", required=True, metavar="HOLDER", help=holder)
    locking.add_argument("--no-recovery", action="store_true", help=no_recovery)
    holders = acts.add_parser("holders", help="change who opens the sealed file")
    how = holders.add_mutually_exclusive_group(required=True)
    how.add_argument("--add", action="append", metavar="HOLDER", help="let another one open it, too")
    how.add_argument("--remove", action="append", metavar="HOLDER", help="take one out")
    how.add_argument("--refresh", action="store_true", help="have each wrap again, after its own key was rotated")
    how.add_argument(
        "--new-file-key", action="store_true", help="give the file another key: one that left opens it no more"
    )
    holders.add_argument("--no-recovery", action="store_true", help=no_recovery)
    acts.add_parser("unlock-file", help="have the master key file plain again")


def _declare_backup(commands: Any) -> None:
    backup = commands.add_parser("backup", help="copy the database, not the master key, into a new folder")
    backup.add_argument("folder", type=Path, metavar="DIR", help="the folder to create")
    sealed = "put the sealed master key file into it; refused for a plain one"
    backup.add_argument("--with-sealed-key", action="store_true", help=sealed)


def _declare_restore(commands: Any) -> None:
    restore = commands.add_parser("restore", help="restore a backup into an empty database, and verify it")
    restore.add_argument("folder", type=Path, nargs="?", metavar="DIR", help="what `custody backup` made")
    verify = "verify every sealed value and every MAC; without DIR, in the current database"
    restore.add_argument("--verify", action="store_true", help=verify)
    accept = "make the running signer accept an older, restored state"
    restore.add_argument("--accept", action="store_true", help=accept)
