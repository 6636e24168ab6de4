"""The wallets and assignments of an account: read from what a caller sent, and checked."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import UNSET

from api.areas.accounts import store
from api.areas.accounts.types import (
    MAX_ASSIGNED,
    MAX_METADATA_BYTES,
    MAX_WALLETS,
    AccountChangeBody,
    AccountMetadataTooLarge,
    BadAssignment,
    BadConfiguration,
    ChainFamily,
    MetadataReserved,
    TooManyWallets,
    UnknownWallet,
    WalletConfiguration,
    WalletTwice,
)
from api.areas.accounts.wallets import Member, Standing, family_of
from custody.kit.models import Scope
from custody.kit.shapes import Uuid
from custody.kit.spellings import either
from custody.protocol.signer.refusals import AgentIdReserved
from custody.protocol.signer.user_wallets import PREFIX


class Wanted(msgspec.Struct, frozen=True):
    """A wallet that an account is to have; `made` where its agent is made for it."""

    agent: str
    family: ChainFamily | None = None
    name: str | None = None
    made: bool = False
    field: str = "wallet_ids"


class Assignments(msgspec.Struct, frozen=True):
    """The assignments of an account, as columns; UNSET where nothing was sent."""

    owner_user_ids: Any = UNSET
    additional_signer_ids: Any = UNSET
    signer_policy_ids: Any = UNSET

    @property
    def given(self) -> dict[str, list[str]]:
        """Those that were sent."""
        return {name: value for name, value in msgspec.structs.asdict(self).items() if value is not UNSET}


def wallets_in(body: AccountChangeBody, account: str) -> list[Wanted] | None:
    """The wallets that a body names, in its order; None where it names none, and nothing changes."""
    agents = either("walletIds", body.wallet_ids, body.wallet_ids_, absent=UNSET)
    people = either("userWalletIds", body.user_wallet_ids, body.user_wallet_ids_, absent=UNSET)
    configured = either("walletsConfiguration", body.wallets_configuration, body.wallets_configuration_, absent=UNSET)
    if agents is people is configured is UNSET:
        return None
    found = [Wanted(one) for one in agents or ()]
    found += [Wanted(one, field="user_wallet_ids") for one in people or ()]
    made: dict[ChainFamily, int] = {}
    for place, one in enumerate(configured or ()):
        found.append(_configure(one, place, account, made))
    if len(found) > MAX_WALLETS:
        raise TooManyWallets(fields=["wallet_ids"])
    rows = [row for one in found for row in Member("", one.agent, "", one.family, None).rows]
    if len(set(rows)) < len(rows):
        raise WalletTwice(fields=["wallet_ids"])
    return found


def _configure(one: WalletConfiguration, place: int, account: str, made: dict[ChainFamily, int]) -> Wanted:
    field = f"wallets_configuration[{place}]"
    chain_type = either(f"{field}.chainType", one.chain_type, one.chain_type_, absent=UNSET)
    if chain_type is UNSET:
        raise BadConfiguration(fields=[f"{field}.chain_type"])
    family = family_of(chain_type)
    agent = either(f"{field}.walletId", one.wallet_id, one.wallet_id_)
    if agent is not None:
        return Wanted(agent, family, one.name, field=f"{field}.wallet_id")
    if account.startswith(PREFIX):
        raise AgentIdReserved(fields=["id"])
    number = made.get(family, 0)
    made[family] = number + 1
    return Wanted(f"{account}-{family}-{number}", family, one.name, made=True, field=field)


def members(found: Sequence[Wanted], standings: Mapping[str, Standing], *, planned: bool = False) -> list[Member]:
    """The members that are wanted; UnknownWallet for an agent that is not there, except one that is yet to be made."""
    for one in found:
        standing = standings.get(one.agent)
        people = one.field == "user_wallet_ids"
        if (standing is None and not (planned and one.made)) or one.agent.startswith(PREFIX) is not people:
            cure = "user_wallet_ids take wallets of people, the other fields agents of this tenant."
            raise UnknownWallet(
                f"{one.field}: {one.agent!r} is no wallet that may stand there; {cure}", fields=[one.field]
            )
    return [store.new_member(one.agent, standings.get(one.agent), one.family, one.name) for one in found]


def assignments(body: AccountChangeBody) -> Assignments:
    """Read the assignments of a body, each once; BadAssignment."""
    return Assignments(
        _assignment("ownerUserIds", body.owner_user_ids, body.owner_user_ids_),
        _assignment("additionalSignerIds", body.additional_signer_ids, body.additional_signer_ids_),
        _assignment("signerPolicyIds", body.signer_policy_ids, body.signer_policy_ids_),
    )


def _assignment(name: str, first: Any, second: Any) -> Any:
    found = either(name, first, second, absent=UNSET)
    if found is UNSET:
        return UNSET
    if len(found) > MAX_ASSIGNED:
        raise BadAssignment(f"{name} has at most {MAX_ASSIGNED} ids.", fields=[name])
    if name == "ownerUserIds":
        try:
            msgspec.convert(found, list[Uuid])
        except msgspec.ValidationError:
            raise BadAssignment("ownerUserIds: every one must be a user's id, a UUID.", fields=[name]) from None
    return list(dict.fromkeys(found))


async def check_assigned(scope: Scope, agents: Sequence[str], signers: Sequence[str], rules: Sequence[str]) -> None:
    """Raise BadAssignment unless these are signers and rules of these agents."""
    for name, unknown in (
        ("additionalSignerIds", await store.unknown_signers(scope, agents, signers)),
        ("signerPolicyIds", await store.unknown_rules(scope, agents, rules)),
    ):
        if unknown:
            raise BadAssignment(f"{name}: {unknown[0]!r} is of none of the account's wallets.", fields=[name])


def checked_metadata(metadata: dict[str, Any]) -> dict[str, Any]:
    """Return a caller's metadata, or raise what is wrong with it."""
    if "authorization" in metadata:
        raise MetadataReserved(fields=["metadata.authorization"])
    if len(msgspec.json.encode(metadata)) > MAX_METADATA_BYTES:
        raise AccountMetadataTooLarge(fields=["metadata"])
    return metadata
