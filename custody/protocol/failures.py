"""The kinds of failure that cross a socket: one table, read by the worker that sends and the client that receives."""

from typing import Literal

from custody.kit import errors

Kind = Literal[
    "BadOrder",
    "BadProof",
    "Forbidden",
    "NotFound",
    "Conflict",
    "Gone",
    "Frozen",
    "TooMany",
    "Unavailable",
    "Internal",
]
# What is none of these is `Internal`: the worker says no more of it, and the client raises InternalFault.
KINDS: dict[Kind, type[errors.CustodyError]] = {
    "BadOrder": errors.Invalid,
    "BadProof": errors.Unauthenticated,
    "Forbidden": errors.Forbidden,
    "NotFound": errors.NotFound,
    "Conflict": errors.Conflict,
    "Gone": errors.Gone,
    "Frozen": errors.Frozen,
    "TooMany": errors.TooMany,
    "Unavailable": errors.Unavailable,
}


def kind_of(problem: errors.CustodyError) -> Kind:
    """The kind as which an error crosses."""
    return next((name for name, kind in KINDS.items() if isinstance(problem, kind)), "Internal")
