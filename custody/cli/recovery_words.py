"""The words of the commands for keys and recovery, without what these import: other commands pay for none of it."""

from pathlib import Path
from typing import Any


def declare(commands: Any) -> None:
    """`keys`, `backup` and `restore`."""
    _declare_keys(commands)
    _declare_backup(commands)
    _declare_restore(commands)


def _declare_keys(commands: Any) -> None:
    top = commands.add_parser("keys", help="rotate the master key, and say which versions of it there are")
    acts = top.add_subparsers(dest="act", required=True, metavar="status|rotate")
    acts.add_parser("status", help="say what each version seals")
    rotate = acts.add_parser("rotate", help="seal everything anew under a new version; goes on where it was cut off")
    how = rotate.add_mutually_exclusive_group()
    how.add_argument("--prepare", action="store_true", help="only add the version, to be copied to other hosts first")
    how.add_argument("--new", action="store_true", help="begin another version although an older one is still in use")
    how.add_argument("--retire", action="store_true", help="take versions that nothing uses any more out of the file")
    at_once = "with --retire: end the sessions and codes that only time would end"
    rotate.add_argument("--at-once", action="store_true", help=at_once)


def _declare_backup(commands: Any) -> None:
    backup = commands.add_parser("backup", help="copy the database, not the master key, into a new folder")
    backup.add_argument("folder", type=Path, metavar="DIR", help="the folder to make")


def _declare_restore(commands: Any) -> None:
    restore = commands.add_parser("restore", help="put a backup into an empty database, and prove that it opens")
    restore.add_argument("folder", type=Path, nargs="?", metavar="DIR", help="what `custody backup` made")
    verify = "open every sealed value and check every seal; without DIR, of the database that is there"
    restore.add_argument("--verify", action="store_true", help=verify)
    accept = "tell the running signer that an older state was restored on purpose"
    restore.add_argument("--accept", action="store_true", help=accept)
