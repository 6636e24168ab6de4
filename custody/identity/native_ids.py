"""The names of native applications: iOS bundle ids and Android package names."""

import re
from typing import Final

from custody.kit.errors import Invalid

MAX_BUNDLE_ID: Final = 155
MAX_PACKAGE_NAME: Final = 255
_BUNDLE_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9\-]*[A-Za-z0-9])?"
_PACKAGE_LABEL = r"[A-Za-z][A-Za-z0-9_]*"
_BUNDLE_PATTERN = rf"^{_BUNDLE_LABEL}(?:\.{_BUNDLE_LABEL})+\Z"
_PACKAGE_PATTERN = rf"^{_PACKAGE_LABEL}(?:\.{_PACKAGE_LABEL})+\Z"
_BUNDLE = re.compile(_BUNDLE_PATTERN)
_PACKAGE = re.compile(_PACKAGE_PATTERN)


class BadBundleId(Invalid):
    """An iOS bundle id has at least two labels of letters, digits and hyphens, such as com.example.app."""


class BadPackageName(Invalid):
    """An Android package name has at least two labels, each a letter and then letters, digits or _ (org.app)."""


def bundle_id(text: str) -> str:
    """The bundle id itself, or BadBundleId: a wildcard, a single label, or malformed."""
    if len(text) > MAX_BUNDLE_ID or not _BUNDLE.match(text):
        raise BadBundleId
    return text


def package_name(text: str) -> str:
    """The package name itself, or BadPackageName: a wildcard, a single label, or malformed."""
    if len(text) > MAX_PACKAGE_NAME or not _PACKAGE.match(text):
        raise BadPackageName
    return text
