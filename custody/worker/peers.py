"""The processes that may connect to each socket, and what they may send there."""

from collections.abc import Collection, Iterable
from typing import Any

from custody.protocol.command import Command, Process, declaration_of

SIGN_SOCKET: tuple[Process, ...] = ("api", "scheduler", "operator")
IDENTITY_SOCKET: tuple[Process, ...] = ("api", "scheduler", "operator")
# A socket of its own for the proxy, so that a process which reaches the values of secrets reaches nothing that signs.
REVEAL_SOCKET: tuple[Process, ...] = ("proxy",)


def allowed_commands(commands: Iterable[type[Command[Any]]], process: Process) -> frozenset[type[Command[Any]]]:
    """The commands that a process may send."""
    return frozenset(command for command in commands if process in declaration_of(command).senders)


def names_of(uid: int, processes: Collection[Process], peer_uids: dict[str, int], own_uid: int) -> frozenset[Process]:
    """The processes of a socket that a peer with this uid may claim to be; empty for a stranger."""
    # The uid of the operator is root's, or that of the owner of the state folder.
    named: set[Process] = {name for name in processes if peer_uids.get(name, own_uid) == uid and name != "operator"}
    if uid in (0, own_uid) and "operator" in processes:
        named.add("operator")
    return frozenset(named)
