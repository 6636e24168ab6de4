"""`pkcs11`: an AES key that never leaves its token encrypts the file's key, with AES-GCM; named TOKEN/KEY by labels.

We make, list and delete no keys. A PIN is tried once: tokens count wrong ones and lock, and we are started again and
again. So what a token says of its count is believed before anything is tried.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote, unquote

import pkcs11
from pkcs11.mechanisms import GCMParams

from custody.kit.key_head import KEY_BYTES, binding
from custody.kit.opener_settings import PKCS11_MODULE, PKCS11_PIN_FILE
from openers import deadline
from openers.files import secret_text, trusted_code
from openers.outcomes import Away, BadSettings, NotOpened, NotOurs, Refused

_NONCE, _TAG = 12, 16
_GCM = pkcs11.Mechanism.AES_GCM
_LOW = pkcs11.TokenFlag.USER_PIN_COUNT_LOW | pkcs11.TokenFlag.USER_PIN_FINAL_TRY
_WRONG_PIN = (pkcs11.PinIncorrect, pkcs11.PinInvalid, pkcs11.PinLenRange)
_NO_MORE_PIN = (pkcs11.PinLocked, pkcs11.PinExpired, pkcs11.UserPinNotInitialized)
# What else a token answers while it decrypts is about what it was given: some have one error for all of it.
_GONE = (
    *(pkcs11.DeviceError, pkcs11.DeviceRemoved, pkcs11.DeviceMemory, pkcs11.HostMemory, pkcs11.TokenNotPresent),
    *(pkcs11.SessionClosed, pkcs11.SessionHandleInvalid, pkcs11.SessionCount),
)
_NOT_DONE = (
    *(pkcs11.MechanismInvalid, pkcs11.MechanismParamInvalid, pkcs11.FunctionNotSupported),
    *(pkcs11.KeyTypeInconsistent, pkcs11.KeySizeRange),
)
# Some tokens keep no count that they show: a file with two holders would try a wrong PIN twice.
_refused: set[bytes] = set()


def wrap(name: str, file: str, key: bytes) -> tuple[str, bytes]:
    """Encrypt the key of a file; refuse a key of the token that could leave it."""
    token, label = _labels(name)
    with _key_of(token, label) as found:
        _refuse_copies(found, label)
        nonce = os.urandom(_NONCE)
        try:
            made = found.encrypt(key, mechanism=_GCM, mechanism_param=GCMParams(nonce, binding(file), 8 * _TAG))
        except _GONE:
            raise Away(f"The token {token!r} went away while it encrypted.") from None
        except pkcs11.PKCS11Error as problem:
            raise BadSettings(
                f"The token {token!r} does not encrypt by AES-GCM with a nonce from outside: {_name(problem)}."
            ) from None
    return f"{quote(token, safe='')}/{quote(label, safe='')}", nonce + bytes(made)


def unwrap(name: str, blob: bytes, file: str) -> bytes:
    """Decrypt the key of a file."""
    token, label = _labels(name)
    if len(blob) != _NONCE + KEY_BYTES + _TAG:
        raise NotOurs(f"The holder pkcs11 {name} has {len(blob)} bytes, and not {_NONCE + KEY_BYTES + _TAG}.")
    with _key_of(token, label) as found:
        parameters = GCMParams(blob[:_NONCE], binding(file), 8 * _TAG)
        try:
            return bytes(found.decrypt(blob[_NONCE:], mechanism=_GCM, mechanism_param=parameters))
        except _GONE:
            raise Away(f"The token {token!r} went away while it decrypted.") from None
        except _NOT_DONE as problem:
            raise BadSettings(f"The token {token!r} does not decrypt by AES-GCM: {_name(problem)}.") from None
        except pkcs11.PKCS11Error as problem:
            raise NotOurs(
                f"The key {label!r} of the token {token!r} does not open this file: it was made by another key, for "
                f"another file, or was changed ({_name(problem)}). Open it by another holder."
            ) from None


def _labels(name: str) -> tuple[str, str]:
    token, slash, key = (unquote(part) for part in name.partition("/"))
    if not slash or "/" in name.partition("/")[2] or not token or not key:
        raise BadSettings(f"The holder pkcs11 {name} is not named TOKEN/KEY by its labels, a blank written as %20.")
    return token, key


@contextmanager
def _key_of(token: str, label: str) -> Iterator[Any]:
    """The key, in a session that ends with the block."""
    one = _token(token)
    with _session(one, token) as session:
        wanted = {
            pkcs11.Attribute.CLASS: pkcs11.ObjectClass.SECRET_KEY,
            pkcs11.Attribute.KEY_TYPE: pkcs11.KeyType.AES,
            pkcs11.Attribute.LABEL: label,
        }
        try:
            keys = list(session.get_objects(wanted))
        except pkcs11.PKCS11Error as problem:
            raise Away(f"The token {token!r} does not say what keys it has: {_name(problem)}.") from None
        if not keys:
            raise NotOurs(f"The token {token!r} has no AES key {label!r}. Is it the right token?")
        if len(keys) > 1:
            raise BadSettings(f"The token {token!r} has {len(keys)} AES keys {label!r}. Give them labels of their own.")
        yield keys[0]


def _token(label: str) -> Any:
    deadline.begin()
    path = trusted_code(PKCS11_MODULE, "/usr/lib/softhsm/libsofthsm2.so")
    try:
        library = pkcs11.lib(path)
    except pkcs11.PKCS11Error as problem:
        if "while loading" in str(problem):
            # The loader's own words: a path and a reason.
            raise BadSettings(f"{PKCS11_MODULE}: {path} cannot be loaded: {problem}.") from None
        raise Away(f"The module {path} does not begin: {_name(problem)}. Is its own configuration in order?") from None
    try:
        tokens = list(library.get_tokens(token_label=label))
    except pkcs11.PKCS11Error as problem:
        raise Away(f"The module {path} does not say what tokens it has: {_name(problem)}.") from None
    if not tokens:
        raise Away(f"The token {label!r} is not there. Plug it in, or start what serves it.")
    if len(tokens) > 1:
        raise BadSettings(f"There are {len(tokens)} tokens {label!r}. Give them labels of their own.")
    return tokens[0]


def _session(token: Any, label: str) -> Any:
    pin = secret_text(PKCS11_PIN_FILE, "/etc/custody/pkcs11-pin")
    if token.flags & pkcs11.TokenFlag.USER_PIN_LOCKED:
        raise Refused(f"The token {label!r} is locked: too many wrong PINs. Its security officer sets a new one.")
    if token.flags & _LOW or bytes(token.serial) in _refused:
        raise Refused(
            f"A wrong PIN was tried at the token {label!r} and none that was right since, so none is tried. Put the "
            f"right one into {PKCS11_PIN_FILE}, and log in with it once by hand (pkcs11-tool --login --list-objects)."
        )
    try:
        return token.open(user_pin=pin)
    except (*_WRONG_PIN, *_NO_MORE_PIN) as problem:
        _refused.add(bytes(token.serial))
        raise _pin_refused(label, problem) from None
    except pkcs11.PKCS11Error as problem:
        raise Away(f"The token {label!r} opens no session: {_name(problem)}.") from None


def _pin_refused(label: str, problem: Exception) -> NotOpened:
    if isinstance(problem, _WRONG_PIN):
        return Refused(
            f"The token {label!r} refused the PIN of {PKCS11_PIN_FILE}. It was tried once, and is not again before "
            "somebody logged in by hand with the right one."
        )
    return Refused(f"The token {label!r} takes no PIN now: {_name(problem)}. Its security officer sets a new one.")


def _refuse_copies(key: Any, label: str) -> None:
    """Only a key that never was outside, and cannot go there, is worth the name."""
    try:
        inside = not key[pkcs11.Attribute.EXTRACTABLE] and key[pkcs11.Attribute.NEVER_EXTRACTABLE]
        hidden = key[pkcs11.Attribute.SENSITIVE] and key[pkcs11.Attribute.LOCAL]
        length = key[pkcs11.Attribute.VALUE_LEN]
    except pkcs11.PKCS11Error as problem:
        raise BadSettings(f"The token does not say whether the key {label!r} can leave it: {_name(problem)}.") from None
    if not (inside and hidden):
        raise BadSettings(f"The key {label!r} could leave its token, or came from outside. Make one inside: sensitive.")
    if length != KEY_BYTES:
        raise BadSettings(f"The key {label!r} has {8 * length} bits. Make one of 256.")


def _name(problem: Exception) -> str:
    return type(problem).__name__
