"""Why an answer of a SAML identity provider is refused, and at which check. The codes never change: docs/saml.md."""

from typing import Final, NamedTuple

from custody.kit.errors import Unauthenticated

# Of what an answer said, in a sentence or beside it.
MAX_SHOWN: Final = 200


class Check(NamedTuple):
    """One step of judging an answer, and what a page writes beside it."""

    name: str
    title: str


# In the order in which they are made: where one fails, those before it have passed.
CHECKS: Final = (
    Check("encoding", "The answer is base64 of at most 64 KiB"),
    Check("xml", "It is XML in which nothing can hide"),
    Check("response", "It is a SAML 2.0 response in the expected shape"),
    Check("status", "The identity provider reports success"),
    Check("assertion", "It holds exactly one assertion, encrypted or not as the configuration wants it"),
    Check("signed", "The assertion itself is signed"),
    Check("signature", "The signature of the assertion is by a certificate of the configuration"),
    Check("response_signature", "The signature of the response holds too, if there is one"),
    Check("issuer", "The configured identity provider issued it"),
    Check("recipient", "It is addressed to this service"),
    Check("request", "It answers the request that this sign-in began with"),
    Check("times", "It is valid now and at most 10 minutes old"),
    Check("audience", "It is meant for this tenant"),
    Check("authentication", "It says that the person signed in"),
    Check("person", "It names the person"),
)
NAMES: Final = tuple(check.name for check in CHECKS)


class SamlRefused(Unauthenticated):
    """The answer of the identity provider is refused."""

    def __init__(self, code: str, check: str, message: str, *, expected: str = "", found: str = "") -> None:
        super().__init__(message, code=code)
        self.check = check
        self.expected = plain(expected)
        self.found = plain(found)

    @property
    def passed(self) -> tuple[Check, ...]:
        """The checks before the one that failed."""
        return CHECKS[: NAMES.index(self.check)]


def bad_shape(check: str, expected: str, found: str) -> SamlRefused:
    """The refusal of elements or attributes that are not where they must be."""
    return SamlRefused(
        "saml_shape",
        check,
        "The response does not have the expected shape. The administrator of the identity provider must send a plain "
        "sign-in response, with nothing added to it.",
        expected=expected,
        found=found,
    )


def plain(text: str) -> str:
    """A bounded and printable form of what strangers wrote."""
    cut = text if len(text) <= MAX_SHOWN else text[: MAX_SHOWN - 1] + "…"
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in cut)
