"""Microsoft's own client of a vault: `wrap` or `open NAME BASE64`, to standard output in base64."""

import sys
from base64 import b64decode, b64encode

from azure.identity import EnvironmentCredential
from azure.keyvault.keys import KeyClient
from azure.keyvault.keys.crypto import KeyWrapAlgorithm

what, name, given = sys.argv[1:]
vault, _, rest = name.partition("/keys/")
key, _, version = rest.partition("/")
client = KeyClient(vault, EnvironmentCredential()).get_cryptography_client(key, key_version=version)
if what == "wrap":
    made = client.wrap_key(KeyWrapAlgorithm.rsa_oaep_256, b64decode(given)).encrypted_key
else:
    made = client.unwrap_key(KeyWrapAlgorithm.rsa_oaep_256, b64decode(given)).key
print(b64encode(made).decode())
