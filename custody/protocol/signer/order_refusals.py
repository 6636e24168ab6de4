"""Refusals that an order may meet on the path that all take, or as an EVM transaction."""

from custody.kit.errors import Conflict, Invalid, NotFound, Unavailable


class AgentAbsent(NotFound):
    """No such agent."""


class AuthorityTampered(Unavailable):
    """The stored signers of this agent fail their integrity check; nothing is authorised. Contact the operator."""


class Busy(Unavailable):
    """This agent has more orders queued than can be signed in time; retry shortly."""


class DocumentExpired(Invalid):
    """The deadline in this document has passed, so nobody could use its signature; send it with a later one."""


class FeeAboveCap(Invalid):
    """The requested fee is above this chain's cap."""


class FeeTooLow(Invalid):
    """Nodes do not take this fee: it is below the chain's least, or less than 10 % above the one that it replaces."""


class GasLimitTooLow(Invalid):
    """gasLimit must be at least 21000."""


class KeyTampered(Unavailable):
    """A stored key or address of this agent fails its integrity check; do not fund it, and contact the operator."""


class NonceGap(Invalid):
    """A transaction with this nonce could not be mined, because lower nonces are missing."""


class NonceImplausible(Conflict):
    """This nonce is far ahead of every nonce this wallet has used."""


class NonceTaken(Conflict):
    """This nonce belongs to a transaction that was already sent."""


class NonceUsed(Conflict):
    """The chain has already used this nonce."""


class PolicyTampered(Unavailable):
    """The stored policies of this agent fail their integrity check; nothing is signed. Contact the operator."""


class ReferenceTaken(Conflict):
    """Another transfer of this agent has this referenceId; send a new reference for a new transfer."""


class UnknownChain(Invalid):
    """This chain is not configured here."""
