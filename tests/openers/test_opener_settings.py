"""An opener gets the settings of its own kind and no others."""

from custody.kit.opener_settings import RESERVED, SETTINGS, settings_of

EVERYTHING = {
    "AWS_PROFILE": "a",
    "AZURE_CLIENT_ID": "b",
    "GOOGLE_APPLICATION_CREDENTIALS": "c",
    "GOOGLE_CLIENT_ID": "of sign-in",
    "GOOGLE_CLIENT_SECRET": "of sign-in",
    "SERVICE_PKCS11_PIN_FILE": "d",
    "SERVICE_PKCS11_PIN_FILE_OLD": "e",
    "SERVICE_TRANSIT_TOKEN_FILE": "f",
    "SERVICE_MASTER_KEY_OPENER": "h",
    "SERVICE_PKCS11_MODULE": "i",
    "SERVICE_TRANSIT_URL": "j",
    "SERVICE_TRANSIT_CA_FILE": "k",
    "SERVICE_RECOVERY_KEY_FILE": "l",
    "SERVICE_UNLOCK_SOCKET": "m",
    "SERVICE_DATABASE_URL_SIGNER": "g",
}


def test_an_opener_gets_the_settings_of_its_kind() -> None:
    got = {kind: set(settings_of(kind, EVERYTHING)) for kind in SETTINGS}

    assert {kind: names for kind, names in got.items() if names} == {
        "awskms": {"AWS_PROFILE"},
        "azurekv": {"AZURE_CLIENT_ID"},
        "gcpkms": {"GOOGLE_APPLICATION_CREDENTIALS"},
        "command": {"SERVICE_MASTER_KEY_OPENER"},
        "people": {"SERVICE_UNLOCK_SOCKET"},
        "pkcs11": {"SERVICE_PKCS11_MODULE", "SERVICE_PKCS11_PIN_FILE"},
        "recovery": {"SERVICE_RECOVERY_KEY_FILE"},
        "transit": {"SERVICE_TRANSIT_URL", "SERVICE_TRANSIT_TOKEN_FILE", "SERVICE_TRANSIT_CA_FILE"},
    }


def test_a_kind_that_is_not_known_gets_none() -> None:
    assert settings_of("nobody", EVERYTHING) == {}


def test_the_names_that_no_other_process_gets_are_the_services_own() -> None:
    assert {"SERVICE_TRANSIT_TOKEN_FILE", "SERVICE_PKCS11_PIN_FILE"} <= RESERVED
    assert not RESERVED & {"AWS_", "TPM2TOOLS_TCTI"}
