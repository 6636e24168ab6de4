"""The rules for joining a tenant: `authAbuseConfig.invitations` and `authAbuseConfig.wallet`."""

from typing import Annotated

import msgspec

from custody.kit.described import described


class InvitationPolicy(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """`authAbuseConfig.invitations`; the defaults are those of a tenant that saved nothing."""

    require_token: Annotated[
        bool, described("True if joining needs an invitation's token; else the invited address is enough.")
    ] = True


class WalletPolicy(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """`authAbuseConfig.wallet`; the defaults are those of a tenant that saved nothing."""

    restrict_to_one_third_party_wallet: Annotated[
        bool, described("True to permit a person at most one linked wallet; the report lists people with more.")
    ] = False
