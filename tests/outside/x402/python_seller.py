"""A seller by x402's own package for Python: Flask with its middleware, and a facilitator that settles on a given node.

Its interpreter has that package, and no other of this project: `python python_seller.py NODE_URL TOKEN KEY PAY_TO`.
"""

import sys

from flask import Flask, request
from werkzeug.serving import make_server
from x402 import x402FacilitatorSync, x402ResourceServerSync
from x402.http.middleware.flask import payment_middleware
from x402.http.types import PaymentOption, RouteConfig
from x402.http.utils import decode_payment_signature_header
from x402.mechanisms.evm import FacilitatorWeb3Signer
from x402.mechanisms.evm.exact import register_exact_evm_facilitator, register_exact_evm_server
from x402.schemas import AssetAmount

NETWORK = "eip155:31337"
url, token, key, pay_to = sys.argv[1:]
facilitator = x402FacilitatorSync()
register_exact_evm_facilitator(facilitator, FacilitatorWeb3Signer(key, url), networks=NETWORK)
server = x402ResourceServerSync(facilitator)
register_exact_evm_server(server, NETWORK)
app = Flask(__name__)
price = AssetAmount(amount="60", asset=token, extra={"name": "USDC", "version": "2"})
option = PaymentOption(scheme="exact", pay_to=pay_to, price=price, network=NETWORK)
payment_middleware(app, {"GET /weather": RouteConfig(accepts=option, description="Weather")}, server)


@app.get("/weather")
def tell_weather() -> dict[str, str]:
    """Tell what was paid for."""
    return {"weather": "dry"}


@app.post("/read")
def read_payment() -> dict[str, object]:
    """Read a payment as the package reads it, and say what it thinks of it."""
    payload = decode_payment_signature_header(request.get_json()["value"])
    verdict = facilitator.verify(payload, payload.accepted)
    return {"valid": verdict.is_valid, "payer": verdict.payer, "reason": verdict.invalid_reason}


listening = make_server("127.0.0.1", 0, app, threaded=True)
print(f"listening on 127.0.0.1:{listening.server_port}", flush=True)
listening.serve_forever()
