"""The callers of a worker, once their proof was looked at: what handlers may believe of who asks."""

from datetime import datetime
from typing import Protocol

import msgspec

from custody.identity.mfa import Action, MfaPolicy, is_fresh, max_age
from custody.kit import clock
from custody.kit.act import Credential
from custody.kit.callers import Proof
from custody.kit.errors import Forbidden
from custody.kit.shapes import Role
from custody.protocol.refusals import WrongRole, mfa_required

PLATFORM = "platform"


class WrongKind(Forbidden):
    """This action does not accept this kind of credential."""


class ProvenAgent(msgspec.Struct, frozen=True):
    """An agent token whose signature holds. Incarnation and epoch are compared with the agent's row, in the write."""

    tenant: str
    agent: str
    incarnation: str
    epoch: int

    @property
    def principal(self) -> str:
        """The name under which idempotency keys know this caller; a re-created agent is another one."""
        return f"agent:{self.agent}:{self.incarnation}"


class ProvenTenant(msgspec.Struct, frozen=True, kw_only=True):
    """A caller that acts for a tenant: by default the holder of a tenant key that the signer sealed.

    `standing` is the credential that every write checks again, so that nothing is done for one that ended meanwhile.
    """

    tenant: str
    standing: Credential
    principal: str


class ProvenSystem(msgspec.Struct, frozen=True):
    """The service itself, where nobody asks: it does what was decided before."""

    tenant: str
    principal: str


class ProvenAppClient(ProvenTenant, frozen=True, kw_only=True):
    """A server integration with a secret of an enabled app client."""

    client: str


class ProvenSession(ProvenTenant, frozen=True, kw_only=True):
    """A person signed in to a tenant, with the role and the policy of this moment."""

    user: str
    session: str
    role: Role
    mfa_at: int | None
    policy: MfaPolicy
    methods: tuple[str, ...]
    # The app client at whose page the session began.
    page: str | None = None
    # A tenant's sign-on began it.
    bound: bool = False
    # The approval, and the digest of its order, that the token is good for, and for nothing else.
    item: tuple[str, str] | None = None

    def need(self, roles: frozenset[Role], action: Action | None) -> None:
        """Raise unless the role is one of these and, for an action, a second factor is recent enough."""
        if self.role not in roles:
            raise WrongRole
        if action is not None and not is_fresh(self.policy, action, self.mfa_at, int(clock.now().timestamp())):
            raise mfa_required(action, self.methods, max_age(self.policy, action))


class OnlyUnscoped(Forbidden):
    """Only the unscoped platform key, that of the key file, may do this."""


class ProvenPlatform(msgspec.Struct, frozen=True):
    """A platform key."""

    principal: str
    scopes: tuple[str, ...] | None
    # False: the deployment does not look at scopes.
    scoped: bool = True

    def need_unscoped(self) -> None:
        """Raise OnlyUnscoped for a key with scopes, whatever the deployment makes of scopes."""
        if self.scopes is not None:
            raise OnlyUnscoped

    def need(self, scope: str) -> None:
        """Raise WrongKind unless the key has the scope (None: it has all)."""
        if self.scoped and self.scopes is not None and scope not in self.scopes:
            raise WrongKind(f"This platform key lacks the scope {scope}.")


Proven = ProvenAgent | ProvenTenant | ProvenPlatform


class Prover(Protocol):
    """The check of proofs, in `custody/worker/proofs.py`."""

    async def anybody(self, proof: Proof | None) -> Proven:
        """The caller of any kind; BadProof where the proof does not hold."""

    def is_member(self, tenant: str, user: str, role: Role, since: datetime, mac: bytes) -> bool:
        """Tell whether a membership is one that identity sealed."""
