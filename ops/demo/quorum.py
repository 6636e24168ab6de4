"""The step in which two of three services must agree to a transfer."""

from collections.abc import Mapping

import msgspec
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key

from custody.kit import clock
from custody.kit.ids import new_uuid
from ops.demo.callers import Answer, Api, DemoFailed
from ops.demo.printout import Printout
from ops.demo.world import World
from ops.sign_request import Key, Request, public_key, sign

_SERVICES = ("billing", "stock", "audit")
_WEI = 2 * 10**16


async def agree_on_a_transfer(world: World, out: Printout) -> None:
    """Register three keys and a quorum, then ask with the signature of one, and of two."""
    keys = {name: generate_private_key(SECP256R1()) for name in _SERVICES}
    async with world.admin() as admin:
        ids = {name: await _register(world, admin, name, public_key(key)) for name, key in keys.items()}
        members = {"threshold": 2, "memberSignerIds": list(ids.values())}
        quorum = {"name": "Two of three", **members, "permissions": ["transfer"]}
        quorum_id = (await admin.do("POST", f"/agents/{world.agent}/key-quorums", quorum))["id"]
    out.line("services", f"{', '.join(_SERVICES)}: a P-256 key each, registered by a person with a second factor")
    one, two = _SERVICES[:1], _SERVICES[::2]
    refused = await _transfer(world, quorum_id, {ids[name]: keys[name] for name in one})
    if refused.status != 403:
        raise DemoFailed(f"the transfer with one of three signatures was not refused ({refused.status})")
    out.amount("refused", _WEI, f"to the supplier, with the signature of {one[0]} alone")
    out.line("because", refused.error)
    answer = await _transfer(world, quorum_id, {ids[name]: keys[name] for name in two})
    if answer.status != 200:
        raise DemoFailed(f"the transfer with two of three signatures was not signed ({answer.status}): {answer.error}")
    out.amount("signed", _WEI, f"with the signatures of {' and '.join(two)}")
    out.line("transaction", answer.data["txHash"])
    out.line("mined in", f"block {await world.chain.wait_for_block(answer.data['txHash'])}")
    out.amount("the supplier has", await world.chain.balance(world.supplier), "on the chain")


async def _register(world: World, admin: Api, name: str, key: str) -> str:
    # A `service` signer could act alone; a member of a quorum can't.
    who = {"signerType": "quorum_member", "subjectType": "external", "subjectId": name}
    signer = {**who, "keyType": "p256", "publicKey": key, "permissions": ["transfer"]}
    return str((await admin.do("POST", f"/agents/{world.agent}/signers", signer))["id"])


async def _transfer(world: World, quorum: str, keys: Mapping[str, Key]) -> Answer:
    # These very bytes are signed and sent.
    reference = f"walk-{new_uuid()[:8]}"
    body = msgspec.json.encode({"to": world.supplier, "value": str(_WEI), "referenceId": reference})
    path, now = f"/vault/{world.agent}/actions/transfer", str(int(clock.now().timestamp()))
    headers = sign(Request("POST", path, body, new_uuid(), now), world.tenant_id, keys, quorum)
    return await world.as_agent.ask("POST", path, body, headers)
