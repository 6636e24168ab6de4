"""The signer's refusals of private keys that come from elsewhere, as its caller is told."""

from custody.kit.errors import Conflict, Forbidden, Invalid


class ImportDisabled(Forbidden):
    """Importing private keys is switched off, by the deployment or by this tenant's second-factor policy."""


class ImportByPerson(Forbidden):
    """Only a signed-in owner or admin imports keys: this tenant requires a recent second factor for it."""


class ImportUnderQuorum(Forbidden):
    """This agent has an enabled approval-quorum rule, so its keys are not replaced; disable the rule by votes first."""


class ImportSessionInvalid(Invalid):
    """Encrypted import session is invalid or expired"""


class WrongWalletIndex(Invalid):
    """walletIndex: you have no wallet of this index; send that of a wallet of yours, or make it first."""


class ImportWrongAgent(Invalid):
    """This import session is for another agent or wallet; submit it where it was begun. It is still open."""


class ImportEnvelope(Invalid):
    """The envelope does not open; seal it again, to the key of this session. The session is still open."""


class TooManyImports(Conflict):
    """This tenant has as many open import sessions as it may have; finish one, or wait ten minutes."""


class WalletInUse(Conflict):
    """This wallet has signed, or one of its orders waits, so its key is not replaced; import into another agent."""


class WalletTaken(Conflict):
    """Another agent of this tenant has this wallet already."""
