"""`custody keys lock`, `holders`, `unlock-file`: seal the master key file, change who opens it, have it plain again.

Each act wraps, opens again through every holder that it can, compares, and only then replaces the file in one step. A
file that changed meanwhile is not replaced, for the signer may just have added a version. What is cut off anywhere
leaves the file as it was; the next call begins again.
"""

import argparse
import os
import sys
from pathlib import Path

import msgspec

from custody.kit import key_head
from custody.kit.errors import Conflict
from custody.kit.key_head import KEY_BYTES, MAX_FILE, Head, MalformedHead
from custody.worker import key_file, key_folder
from custody.worker.key_file import KeyFileProblem
from custody.worker.sealed_keys import CannotBeOpened, FileKey
from openers import holding, no_dumps
from openers.outcomes import NotOpened
from openers.wrapped import Wrapped

# Of the operator's own, outside of every provider.
OUTSIDE = ("recovery", "people")


class NotDone(Conflict):
    """The file was left as it was; the sentence says why, and what to do."""


class File(msgspec.Struct, frozen=True):
    """The master key file as it was read, None where there is none."""

    path: Path
    content: bytes | None

    @property
    def head(self) -> Head | None:
        """The head of a sealed one."""
        return key_head.split(self.content)[0] if self.content and key_head.is_sealed(self.content) else None

    def need_head(self) -> Head:
        """The head; NotDone of a plain file."""
        if (head := self.head) is None:
            raise NotDone(f"{self.path} is not sealed. Seal it with `custody keys lock`.")
        return head


def main(words: list[str]) -> int:
    """Do what was asked, and say what is to be done next."""
    no_dumps.forbid()
    chosen = parser().parse_args(words)
    try:
        file = read(chosen.file)
        said = {"lock": lock, "holders": change_holders, "unlock-file": unlock_file, "check": check}[chosen.act](
            file, chosen
        )
    except (NotDone, MalformedHead, CannotBeOpened, KeyFileProblem) as problem:
        print(f"custody: {problem.message}", file=sys.stderr)
        return 1
    except NotOpened as problem:
        print(f"custody: {problem.sentence}", file=sys.stderr)
        return problem.status
    except OSError as problem:
        print(f"custody: {problem.filename or chosen.file}: {problem.strerror}", file=sys.stderr)
        return 1
    print(said)
    return 0


def parser() -> argparse.ArgumentParser:
    """The words; `custody keys` has them too, and passes them on."""
    top = argparse.ArgumentParser(prog="custody keys")
    top.add_argument("--file", type=Path, required=True)
    top.add_argument("--source", default="", help="the kinds that are asked to open")
    acts = top.add_subparsers(dest="act", required=True)
    locking = acts.add_parser("lock")
    locking.add_argument("--to", action="append", required=True)
    locking.add_argument("--no-recovery", action="store_true")
    holders = acts.add_parser("holders")
    how = holders.add_mutually_exclusive_group(required=True)
    how.add_argument("--add", action="append")
    how.add_argument("--remove", action="append")
    how.add_argument("--refresh", action="store_true")
    how.add_argument("--new-file-key", action="store_true")
    holders.add_argument("--no-recovery", action="store_true")
    acts.add_parser("unlock-file")
    acts.add_parser("check")
    return top


def lock(file: File, chosen: argparse.Namespace) -> str:
    """Seal a plain file, or make one without a version for a first start."""
    if file.head is not None:
        raise NotDone(f"{file.path} is sealed already. Change who opens it with `custody keys holders`.")
    if file.content is not None:
        # What could not be read later is not sealed now.
        key_file_at(file.path).read()
    wanted = [holding.parse(word) for word in chosen.to]
    insist_on_recovery([kind for kind, _ in wanted], chosen)
    key, name = os.urandom(KEY_BYTES), os.urandom(8).hex()
    opened = [holding.wrap(kind, word, name, key) for kind, word in wanted]
    lines = key_file.text_of(file.content or b"")
    replace(file, seal_and_open(opened, name, key, lines), lines, key)
    kinds = ",".join(dict.fromkeys(kind for kind, _ in wanted if kind != "recovery")) or "recovery"
    done = "Sealed" if file.content is not None else "Made, without a version until the first start,"
    after = (
        "\nCopies of the plain file still open what they opened: destroy them, then run `custody keys rotate` and "
        "`custody keys rotate --retire`."
    )
    return f"{done} {file.path}. Set SERVICE_MASTER_KEY_SOURCE={kinds} and start.{after if lines else ''}"


def change_holders(file: File, chosen: argparse.Namespace) -> str:
    """Add holders, take some out, have all wrap again, or give the file another key."""
    head = file.need_head()
    key = holding.open_by(head, chosen.source)
    lines = FileKey(key).open(file.content or b"")
    kept = [Wrapped(holder, None) for holder in head.holders]
    name, elsewhere = head.file, []
    if chosen.add:
        new = [holding.parse(word) for word in chosen.add]
        kept += [holding.wrap(kind, word, name, key) for kind, word in new]
    elif chosen.remove:
        kept = without(kept, chosen.remove)
    elif chosen.refresh:
        kept = [holding.wrap_again(one.holder, name, key) for one in kept]
    else:
        key, name = os.urandom(KEY_BYTES), os.urandom(8).hex()
        elsewhere = [one.holder for one in kept if holding.is_elsewhere(one.holder)]
        here = [one.holder for one in kept if one.holder not in elsewhere]
        if not here:
            raise NotDone("Every holder is of another host, so nobody here can wrap another key. Do it there.")
        kept = [holding.wrap(one.kind, one.name, name, key) for one in here]
    insist_on_recovery([one.holder.kind for one in kept], chosen)
    replace(file, seal_and_open(kept, name, key, lines), lines, key)
    opens = ", ".join(f"{one.holder.kind} {one.holder.name}" for one in kept)
    if name != head.file:
        gone = "".join(f"\n{one.kind} {one.name} is of another host: add it there again." for one in elsewhere)
        return f"{file.path} has another key. It is opened by {opens}. Old copies open with the old key only.{gone}"
    return f"{file.path} is opened by {opens}."


def unlock_file(file: File, chosen: argparse.Namespace) -> str:
    """Have the file plain again."""
    key = holding.open_by(file.need_head(), chosen.source)
    lines = FileKey(key).open(file.content or b"")
    replace(file, key_file.bytes_of(lines), lines, None)
    return f"{file.path} is plain again. Unset SERVICE_MASTER_KEY_SOURCE, and start."


def check(file: File, chosen: argparse.Namespace) -> str:
    """Ask each holder that needs nobody at a terminal, and say what it answers."""
    head, said, problems = file.need_head(), [], 0
    for one in head.holders:
        if one.kind in OUTSIDE:
            said.append(f"not asked  {one.kind} {one.name}: it needs people")
            continue
        try:
            FileKey(holding.ask(one.kind, holding.only(head, one))).open(file.content or b"")
            said.append(f"opens      {one.kind} {one.name}")
        except (NotOpened, CannotBeOpened) as problem:
            problems += 1
            said.append(f"NOT        {one.kind} {one.name}: {problem}")
    if problems:
        raise NotDone("\n".join(said))
    return "\n".join(said)


def without(holders: list[Wrapped], words: list[str]) -> list[Wrapped]:
    """The others; a kind alone means its only holder."""
    left = list(holders)
    for word in words:
        kind, _, name = word.partition(":")
        found = [one for one in left if one.holder.kind == kind and name in ("", one.holder.name)]
        if len(found) != 1:
            raise NotDone(f"{len(found)} holders are meant by {word}. `custody keys status` lists them as KIND NAME.")
        left.remove(found[0])
    if not left:
        raise NotDone("The last holder cannot go. `custody keys unlock-file` has the file plain.")
    return left


def insist_on_recovery(kinds: list[str], chosen: argparse.Namespace) -> None:
    """Refuse a file that a provider alone can open, unless that is wanted in so many words."""
    if not chosen.no_recovery and not set(kinds) & set(OUTSIDE):
        raise NotDone(
            "No holder is your own: whoever loses that key, or the account, loses every wallet and every backup. "
            "Add `recovery` or `people:2/3`, or say --no-recovery."
        )


def seal_and_open(holders: list[Wrapped], name: str, key: bytes, lines: str) -> bytes:
    """The sealed file, once each holder that can be asked has opened this very head."""
    head = key_head.write_head(name, tuple(one.holder for one in holders))
    for one in holders:
        if one.open is None:
            continue
        if one.open(head) != key:
            raise NotDone(
                f"{one.holder.kind} {one.holder.name} opened another key than it wrapped; nothing was changed."
            )
    return FileKey(key).seal(head, lines)


def replace(file: File, content: bytes, lines: str, key: bytes | None) -> None:
    """Put this in the place of the file as it was read; it is on disk, and opens, when this returns."""
    path = file.path.resolve()
    draft = path.with_name(f".{path.name}.locking")
    # The draft too: it has the same name for everybody, and who is late would put that of another, half written, there.
    with key_folder.alone(path.parent):
        draft.unlink(missing_ok=True)
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            owner = path.stat() if file.content is not None else path.parent.stat()
            if os.geteuid() == 0:
                os.fchown(descriptor, owner.st_uid, owner.st_gid)
            key_file.write(descriptor, key_file.text_of(content))
            written = draft.read_bytes()
            if (FileKey(key).open(written) if key else key_file.text_of(written)) != lines:
                raise NotDone("What was written is not what was to be written; nothing was changed.")
            if read(file.path).content != file.content:
                raise NotDone(f"{file.path} was changed meanwhile; nothing was changed. Repeat the command.")
            draft.replace(path)
            key_file.sync_folder(path.parent)
        finally:
            draft.unlink(missing_ok=True)


def read(path: Path) -> File:
    """The file as it is now; one that others can read is refused."""
    try:
        with path.open("rb") as content:
            if os.fstat(content.fileno()).st_mode & 0o077:
                raise NotDone(f"Others can read the master key {path}. Run: chmod 600 {path}")
            found = content.read(MAX_FILE + 1)
    except FileNotFoundError:
        if path.is_symlink():
            raise NotDone(f"{path} is a link to nothing.") from None
        return File(path, None)
    if len(found) > MAX_FILE:
        raise NotDone(f"{path} is too long for a master key file.")
    return File(path, found)


def key_file_at(path: Path) -> key_file.KeyFile:
    """The reader of the signer's, for a plain file."""
    cure = "Restore the right file."
    return key_file.KeyFile(path=path, name="master key", process="signer", cure_other=cure, cure_lacking=cure)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
