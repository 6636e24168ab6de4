"""`custody break-quorum`: the operator's way out where the keys of an approval quorum are lost. docs/signers.md."""

import sys
from argparse import Namespace

from custody.kit import environment
from custody.kit.errors import CustodyError
from custody.protocol.client import InternalFault, SignerClient
from custody.protocol.signer.operation import BreakQuorum
from ops.platform_keys import operator
from ops.settings import Settings


async def run(settings: Settings, chosen: Namespace) -> int:
    """Say it to the signer, and say from when on it holds; 1 where it was refused."""
    signer = SignerClient(str(environment.sign_socket(settings.environment)), "operator")
    try:
        message = BreakQuorum(chosen.tenant, chosen.agent, chosen.cancel)
        broken = (await signer.ask(message, operator(settings))).answer
    except CustodyError as problem:
        print(f"custody: {problem.message}", file=sys.stderr)
        return 1
    except InternalFault as problem:
        print(f"custody: {problem} Its log says more.", file=sys.stderr)
        return 1
    finally:
        await signer.close()
    if broken.effective_at is None:
        print(f"Cancelled: the approval quorums of {broken.agent} hold.")
    else:
        print(f"The approval quorums of {broken.agent} count as disabled from {broken.effective_at} on.")
        print(f"Until then `custody break-quorum --tenant {chosen.tenant} --agent {chosen.agent} --cancel` cancels it.")
    return 0
