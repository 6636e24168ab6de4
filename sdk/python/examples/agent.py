"""Pay an invoice: `python agent.py invoice-4711 0x1111...1111 42.50` (AGENT's token in SERVICE_AGENT_TOKEN_FILE)."""

import os
import sys

from custody_sdk import Refused, Vault, Waiting, units

name, to, amount = sys.argv[1:4]
with Vault.from_environment() as vault:
    try:
        paid = vault.pay(name, to, units(amount, 6), os.environ["ASSET"], wait=float(os.environ.get("WAIT", "60")))
        print(vault.confirm(paid.tx_id)["status"])
    except Waiting as waiting:
        print("a person decides:", waiting.approval_id)
    except Refused as refused:
        sys.exit(f"not paid: {refused}")
