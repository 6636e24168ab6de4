"""Faults that were mended, as changes to the text of a copy of the package: each puts one back."""

import ast
import shutil
from pathlib import Path

import msgspec

_ROOT = Path(__file__).parents[2]


class Change(msgspec.Struct, frozen=True):
    """A piece of a file and what stands there with the fault."""

    file: str
    now: str
    then: str


class Fault(msgspec.Struct, frozen=True):
    """A fault, the cases that meet it, and after how many of them at most it has to be found."""

    says: str
    kind: str
    changes: tuple[Change, ...]
    within: int


class Gone(AssertionError):
    """The text that a fault would change is gone, there twice, or stands deeper: describe it in the code of today."""


def copy_project(to: Path) -> None:
    """Copy all that a search needs."""
    for part in ("custody", "signer", "tests/execution"):
        ignored = shutil.ignore_patterns("__pycache__", "node_modules")
        shutil.copytree(_ROOT / part, to / part, ignore=ignored)


def put_back(fault: Fault, root: Path) -> None:
    """Put a fault back in a copy; Gone if its text cannot be found or what comes of it cannot be read."""
    for change in fault.changes:
        file = root / change.file
        text = file.read_text()
        if text.count(change.now) != 1:
            raise Gone(f"{fault.says}: {change.file} has {text.count(change.now)} times\n{change.now}")
        text = text.replace(change.now, change.then)
        try:
            ast.parse(text)
        except SyntaxError as error:
            raise Gone(f"{fault.says}: {change.file} is no Python any more, {error}") from None
        file.write_text(text)


_COVERAGE = "custody/policies/coverage.py"
_ADDRESSES = "custody/policies/kinds/approved_addresses.py"
_CALLDATA = "custody/chains/evm/calldata.py"
_LISTS = "custody/policies/kinds/contract_allowlist.py"
# A list vouches for what it lists, whatever is in it.
_VOUCHED = (
    Change(
        _COVERAGE,
        "    if covered.recipients or USD in covered.assets or _touches(covered, effect, subject):\n",
        "    if effect.call is None and (covered.recipients or _touches(covered, effect, subject)):\n",
    ),
    Change(_COVERAGE, "listed.allows_unread(effect.call)", "listed.permits(effect.call)"),
)
FAULTS = {
    "bytes behind arguments": Fault(
        "bytes behind the arguments make all of a call unread, and a list without constraints vouches for it",
        "evm",
        (
            *_VOUCHED,
            Change(
                _CALLDATA,
                "        reading: Reading = reader(site, *arguments.values)\n",
                "        if arguments.behind:\n            return _unread(site, data)\n"
                "        reading: Reading = reader(site, *arguments.values)\n",
            ),
        ),
        2_000,
    ),
    "blacklist": Fault(
        "a list of blocked addresses is not asked about what is unread",
        "evm",
        (
            Change(
                _COVERAGE,
                "    if not (covered.assets or covered.recipients or covered.calls):\n",
                "    if not covered.assets:\n",
            ),
        ),
        2_000,
    ),
    "documents": Fault(
        "a list of blocked addresses is not asked about documents that move value",
        "typed",
        (
            Change(
                _COVERAGE,
                "    if not (covered.assets or covered.recipients or covered.calls):\n",
                "    if not covered.assets:\n",
            ),
        ),
        6_000,
    ),
    "multicall": Fault(
        "a multicall is listed although a call in it cannot be taken apart",
        "evm",
        (
            Change(_LISTS, "        if not call.apart:\n            return\n", ""),
            Change(
                _CALLDATA,
                "        found = _read_one(site, one, depth=depth)\n",
                "        found = _read_one(site, one, depth=depth)\n"
                '        if any(effect.kind == "unread" for effect in found[0]):\n            raise abi.NotCanonical\n',
            ),
        ),
        2_000,
    ),
    "coins": Fault(
        "coins that go along with a call are not counted",
        "evm",
        (
            Change(
                _CALLDATA,
                '    return (Effect("transfer", EVM_NATIVE, value, site.sender, site.contract),) if value else ()\n',
                "    return ()\n",
            ),
            Change(_CALLDATA, "    along = (_rest(site, call, COINS),) if site.value else ()\n", "    along = ()\n"),
        ),
        2_000,
    ),
    "token accounts": Fault(
        "a token account of somebody who is blocked is anybody's",
        "solana",
        (
            Change(_ADDRESSES, "        subject = with_holders(subject, listed, facts.owners_tried)\n", ""),
            Change(_ADDRESSES, '        if hidden is not None and self.mode == "blacklist":\n', "        if False:\n"),
        ),
        2_000,
    ),
}
