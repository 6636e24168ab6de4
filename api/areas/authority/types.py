"""The queries of lists of signers and key quorums."""

from typing import Annotated

from custody.identity.authority import Standing
from custody.kit.described import described
from custody.kit.paging import Page


class AuthorityQuery(Page, frozen=True, kw_only=True):
    """A page of signers or key quorums; without a status revoked ones too."""

    status: Annotated[Standing | None, described("Only those with this status.")] = None
