"""Hosts behind the `@` of a holder's name: each of several has a line of its own, and people tell them apart."""

import os
import re

_STRANGE = re.compile(r"[^A-Za-z0-9.-]+")
_LONGEST_HOST = 64


def with_host(what: str, name: str) -> str:
    """The name to be written: with the host that was named, else with the one that this is."""
    host = name.partition("@")[2] or os.uname().nodename
    return f"{what}@{_STRANGE.sub('-', host)[:_LONGEST_HOST]}"


def is_of_another_host(name: str) -> bool:
    """Say whether a name is that of a holder which another host has."""
    return "@" in name and with_host("", name) != with_host("", "")


def without_host(name: str) -> str:
    """The part of a name that says which holder."""
    return name.partition("@")[0]
