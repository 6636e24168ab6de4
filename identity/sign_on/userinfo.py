"""The word of an issuer on a person at its userinfo endpoint (OpenID Connect Core 1.0, 5.3). Pure.

Nobody has signed it: it is the api's word. So it counts only where an administrator lets that endpoint be asked, says
nothing but an address and whether it is verified, and never contradicts what the issuer signed. Who the person is
comes from the ID token alone.
"""

import msgspec

from custody.identity.addresses import BadEmailAddress, normalised_email
from custody.identity.strict_json import NotStrict, read_object
from identity.sign_on.id_tokens import IdClaims


class NotTheirs(Exception):
    """It is no JSON object, or is not about the person of the ID token."""


def complete(claims: IdClaims, content: str) -> IdClaims:
    """The claims with the verified address of the userinfo endpoint, or as they are; NotTheirs.

    An address in the ID token stays: the word counts for it only if it is said of that very address.
    """
    try:
        said = read_object(content.encode())
    except NotStrict:
        raise NotTheirs from None
    # Anything else could be the answer to another person's token (5.3.2).
    if said.get("sub") != claims.subject:
        raise NotTheirs
    if "email_verified" in claims.said or not _is_same(said.get("email"), claims.said.get("email", said.get("email"))):
        return claims
    more = {"email": said["email"], "email_verified": said.get("email_verified")}
    return msgspec.structs.replace(claims, said={**claims.said, **more})


def _is_same(one: object, other: object) -> bool:
    if not isinstance(one, str) or not isinstance(other, str):
        return False
    try:
        return normalised_email(one) == normalised_email(other)
    except BadEmailAddress:
        return False
