"""Google's own client of its KMS: `wrap NAME FILE` of standard input in base64, or `open` of it, to standard output."""

import sys
from base64 import b64decode, b64encode

from google.cloud.kms import KeyManagementServiceClient

what, name, file, given = sys.argv[1:]
client = KeyManagementServiceClient(transport="rest")
asked = {"name": name, "additional_authenticated_data": f"custody file-key/1 {file}".encode()}
if what == "wrap":
    made = client.encrypt({**asked, "plaintext": b64decode(given)}, retry=None).ciphertext
else:
    made = client.decrypt({**asked, "ciphertext": b64decode(given)}, retry=None).plaintext
print(b64encode(made).decode())
