"""Who joins a tenant, and with what: `authAbuseConfig.invitations` and `authAbuseConfig.wallet`."""

from typing import Annotated

import msgspec

from custody.kit.described import described


class InvitationPolicy(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """`authAbuseConfig.invitations`; the defaults are those of a tenant that saved nothing."""

    require_token: Annotated[
        bool, described("Whether joining needs an invitation's token; if not, the invited address is enough.")
    ] = True


class WalletPolicy(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """`authAbuseConfig.wallet`; the defaults are those of a tenant that saved nothing."""

    restrict_to_one_third_party_wallet: Annotated[
        bool, described("Whether a person may have one linked wallet at most; the report lists who has more.")
    ] = False
