"""The check whether a caller may send a command, by its declaration."""

from custody.protocol.command import AGENT, PLATFORM_KEY, SESSION, Declaration
from custody.protocol.refusals import BadProof, NotForPages, SessionBound
from custody.worker.proven import Proven, ProvenPlatform, ProvenSession, WrongKind


def check_kind(declared: Declaration, kind: str) -> None:
    """Raise WrongKind unless the command takes this kind of credential."""
    if kind in declared.proofs:
        return
    if declared.proofs == AGENT:
        raise WrongKind("Only an agent may sign; use the agent's own token.")
    if declared.proofs == SESSION:
        raise WrongKind("Only a signed-in person may do this.")
    if declared.proofs == PLATFORM_KEY:
        raise WrongKind("Only a platform key may do this.")
    raise WrongKind


def admit(declared: Declaration, caller: Proven) -> None:
    """Raise unless the role, the second factor and the scope are what the command needs, now."""
    if isinstance(caller, ProvenSession):
        if caller.item is not None and not declared.for_item:
            raise BadProof("This token is good for approving one item, and for nothing else.")
        if caller.page is not None and not declared.pages:
            raise NotForPages
        if caller.bound and not declared.bound:
            raise SessionBound
        caller.need(declared.roles, declared.mfa)
    if isinstance(caller, ProvenPlatform) and declared.scope is not None:
        caller.need(declared.scope)
