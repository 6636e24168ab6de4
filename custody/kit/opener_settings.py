"""Settings of the programs that open the sealed master key file, by kind of holder: each program gets its own alone.

None of them reaches the signer or another process: they are credentials, or lead to some. A name that ends in `_` is a
prefix.
"""

from collections.abc import Mapping

PKCS11_MODULE = "SERVICE_PKCS11_MODULE"
PKCS11_PIN_FILE = "SERVICE_PKCS11_PIN_FILE"
TRANSIT_URL = "SERVICE_TRANSIT_URL"
TRANSIT_TOKEN_FILE = "SERVICE_TRANSIT_TOKEN_FILE"  # noqa: S105
TRANSIT_CA_FILE = "SERVICE_TRANSIT_CA_FILE"
RECOVERY_KEY_FILE = "SERVICE_RECOVERY_KEY_FILE"
UNLOCK_SOCKET = "SERVICE_UNLOCK_SOCKET"
# Which TPM, where it is not the one of this host.
SYSTEMD_TPM = "SYSTEMD_TPM2_DEVICE"
TPM2_TCTI = "TPM2TOOLS_TCTI"
# The copy of a head, for the program that waits in a container.
HEAD_FILE = "SERVICE_MASTER_KEY_HEAD_FILE"
OPENER = "SERVICE_MASTER_KEY_OPENER"
# Where modules of PKCS#11 look for their own configuration: SoftHSM, YubiHSM, Luna, Utimaco, and p11-kit's client.
_OF_MODULES = (
    "SOFTHSM2_CONF",
    "YUBIHSM_PKCS11_CONF",
    "ChrystokiConfigurationPath",
    "CS_PKCS11_R3_CFG",
    "P11_KIT_SERVER_ADDRESS",
)
SETTINGS: dict[str, tuple[str, ...]] = {
    "awskms": ("AWS_",),
    "azurekv": ("AZURE_",),
    "command": (OPENER,),
    "gcpkms": ("GOOGLE_",),
    "people": (UNLOCK_SOCKET,),
    "pkcs11": (PKCS11_MODULE, PKCS11_PIN_FILE, *_OF_MODULES),
    "recovery": (RECOVERY_KEY_FILE,),
    "systemd": (SYSTEMD_TPM,),
    "tpm2": (TPM2_TCTI,),
    "transit": (TRANSIT_URL, TRANSIT_TOKEN_FILE, TRANSIT_CA_FILE),
}
# Begin as the names of Google's credentials do, and are the client by which people sign in.
_OF_SIGN_IN = ("GOOGLE_CLIENT_ID", "GOOGLE_CLIENT_SECRET")
# Names of this service's own, which no other process gets.
RESERVED = frozenset(name for names in SETTINGS.values() for name in names if name.startswith("SERVICE_")) | {HEAD_FILE}


def settings_of(kind: str, environment: Mapping[str, str]) -> dict[str, str]:
    """The part of an environment that is meant for the opener of this kind."""
    return {name: value for name, value in environment.items() if _is_of(kind, name)}


def is_of_an_opener(name: str) -> bool:
    """Say whether it is meant for openers, of whatever kind, so that no other process gets it."""
    return any(_is_of(kind, name) for kind in SETTINGS)


def _is_of(kind: str, name: str) -> bool:
    if name in _OF_SIGN_IN:
        return False
    return any(name.startswith(known) if known.endswith("_") else name == known for known in SETTINGS.get(kind, ()))
