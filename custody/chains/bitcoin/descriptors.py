"""Output descriptors (BIP-380 to 386, 389): what wallets that only watch are made of, with their checksums."""

from typing import Final

from custody.chains.bitcoin.types import AddressType, WalletScope

_FORMS: Final[dict[AddressType, str]] = {
    "p2wpkh": "wpkh({})",
    "p2tr": "tr({})",
    "p2sh-p2wpkh": "sh(wpkh({}))",
    "p2pkh": "pkh({})",
}
_CHARACTERS: Final = "0123456789()[],'/*abcdefgh@:$%{}IJKLMNOPQRSTUVWXYZ&+-.;<=>?!^_|~ijklmnopqrstuvwxyzABCDEFGH`#\"\\ "
_CHECKSUM: Final = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
_GENERATOR: Final = (0xF5DEE51989, 0xA9FDCA3312, 0x1BAB10E32D, 0x3706B1677A, 0x644D626FFD)


def of_account(scope: WalletScope, fingerprint: str, xpub: str, branch: str) -> str:
    """All addresses of a branch of an account: `0` receives, `1` is change, `<0;1>` is both."""
    return _with_checksum(scope, f"[{_origin(scope, fingerprint)}]{xpub}/{branch}/*")


def of_address(scope: WalletScope, fingerprint: str, public_key: bytes) -> str:
    """One address alone; the key of a taproot one is written by its x coordinate."""
    key = public_key[1:] if scope.address_type == "p2tr" else public_key
    return _with_checksum(scope, f"[{_origin(scope, fingerprint)}/{scope.change}/{scope.index}]{key.hex()}")


def _origin(scope: WalletScope, fingerprint: str) -> str:
    purpose, coin, account = scope.account_path
    return f"{fingerprint}/{purpose}h/{coin}h/{account}h"


def _with_checksum(scope: WalletScope, key: str) -> str:
    text = _FORMS[scope.address_type].format(key)
    return f"{text}#{_checksum(text)}"


def _checksum(text: str) -> str:
    """Eight characters that tell a descriptor with a wrong one (BIP-380)."""
    places = [_CHARACTERS.index(character) for character in text]
    values: list[int] = []
    for at in range(0, len(places), 3):
        three = places[at : at + 3]
        values += [place & 31 for place in three]
        group = 0
        for place in three:
            group = 3 * group + (place >> 5)
        values.append(group)
    check = 1
    for value in (*values, *(0,) * 8):
        top, check = check >> 35, (check & 0x7_FFFF_FFFF) << 5 ^ value
        for place, generator in enumerate(_GENERATOR):
            check ^= generator if top >> place & 1 else 0
    return "".join(_CHECKSUM[(check ^ 1) >> 5 * (7 - place) & 31] for place in range(8))
