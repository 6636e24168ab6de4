"""Constrained types for everything a caller sends.

msgspec searches a pattern, and Python's `$` also matches before a trailing newline; so every pattern here is
closed with `\\Z` and has a length. A test sends each of them a newline.
"""

from typing import Annotated, Literal

from msgspec import Meta

# Not dots alone: clients rewrite a path with `.` or `..` in it before they send it.
AgentId = Annotated[str, Meta(min_length=1, max_length=128, pattern=r"^\.*[A-Za-z0-9_\-:][A-Za-z0-9_\-.:]*\Z")]
TenantId = Annotated[str, Meta(min_length=1, max_length=64, pattern=r"^\.*[A-Za-z0-9_\-:][A-Za-z0-9_\-.:]*\Z")]
AccountId = TenantId
Uuid = Annotated[
    str,
    Meta(min_length=36, max_length=36, pattern=r"^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\Z"),
]
# One that was made, or that of every agent.
PolicySetId = Annotated[
    str, Meta(min_length=6, max_length=36, pattern=r"^(tenant|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})\Z")
]
# What a member of a tenant may be; what each may do is in custody.identity.roles.
Role = Literal["owner", "admin", "developer", "billing", "viewer", "member"]
# What an invitation gives: nobody becomes an owner by mail.
InvitedRole = Literal["admin", "developer", "billing", "viewer", "member"]
ClientId = Annotated[str, Meta(min_length=3, max_length=64, pattern=r"^[a-z0-9][a-z0-9_-]{2,63}\Z")]
# An identity provider: one of the deployment's, or of a tenant's own; and that with its tenant, as `<tenantId>~<id>`.
ProviderId = Annotated[str, Meta(min_length=1, max_length=32, pattern=r"^[a-z0-9][a-z0-9_-]{0,31}\Z")]
ProviderName = Annotated[str, Meta(min_length=1, max_length=97, pattern=r"^[A-Za-z0-9_\-.:~]+\Z")]
# What it may be exactly is told by code `bad_domain`.
DomainText = Annotated[str, Meta(min_length=1, max_length=253, pattern=r"^[\x21-\x7e]+\Z")]
# Of one that is there already, and so in lower case.
DomainInPath = Annotated[str, Meta(min_length=4, max_length=253, pattern=r"^[a-z0-9-]{1,63}(\.[a-z0-9-]{1,63})+\Z")]
# What people read in one line: no control characters. Postgres keeps no NUL in any text.
DisplayName = Annotated[str, Meta(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+\Z")]
HashOrAddress = Annotated[str, Meta(min_length=1, max_length=128, pattern=r"^[0-9A-Za-z]+\Z")]
Url = Annotated[str, Meta(max_length=2048, pattern=r"^[\x21-\x7e]*\Z")]
EvmAddress = Annotated[str, Meta(min_length=42, max_length=42, pattern=r"^0x[0-9a-fA-F]{40}\Z")]
SolanaAddress = Annotated[str, Meta(min_length=32, max_length=44, pattern=r"^[1-9A-HJ-NP-Za-km-z]+\Z")]
# What it may be exactly is told by code `bad_wallet_scope`.
WalletScopeText = Annotated[str, Meta(min_length=1, max_length=64, pattern=r"^[\x21-\x7e]+\Z")]
# An unsigned 256-bit number has at most 78 digits; its exact bound is checked where it is read.
DecimalAmount = Annotated[str, Meta(min_length=1, max_length=78, pattern=r"^(0|[1-9][0-9]*)\Z")]
# By 32 bytes first: what fits takes a millisecond for the longest; by single bytes it would take nine.
Calldata = Annotated[str, Meta(max_length=262_144, pattern=r"^(0x)?([0-9a-fA-F]{64})*([0-9a-fA-F]{2}){0,31}\Z")]
ReferenceId = Annotated[str, Meta(min_length=1, max_length=128, pattern=r"^[\x21-\x7e]+\Z")]
Offset = Annotated[int, Meta(ge=0, le=2**31 - 1)]  # some functions of the database count in 32 bits
ChainId = Annotated[int, Meta(ge=1, le=2**53)]
Duration = Annotated[str, Meta(min_length=2, max_length=12, pattern=r"^[1-9][0-9]*[smhd]\Z")]
Digest = Annotated[str, Meta(min_length=64, max_length=64, pattern=r"^[0-9a-f]{64}\Z")]
Reason = Annotated[str, Meta(max_length=1000, pattern=r"^[^\x00]*\Z")]
# What approvers' keys are made for: origins that the api does not serve.
ApproverRpId = Literal["approver.custody.localhost", "localhost"]

MAX_UINT256 = 2**256 - 1
