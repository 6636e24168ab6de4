"""Fetch what the operator's endpoint says of prices, and hand it to the signer, which alone reads and judges it.

Each scheduler asks for itself: it hands prices to the signer of its own machine, and none of them is alone.
"""

from custody.chains.prices import MAX_DOCUMENT, MAX_SIGNATURE, SIGNATURE_HEADER
from custody.kit.callers import Origin
from custody.kit.ids import new_uuid
from custody.kit.logs import logger
from custody.kit.outside import Fetcher, NoAnswer, Outside
from custody.kit.web_urls import DEFAULT_PORTS, read_url
from custody.ports import Ports
from custody.protocol.signer.operation import TakePrices
from custody.protocol.workers import Workers

log = logger(__name__)
_DEPLOYMENT = "platform"


class PriceFetches:
    """The way from one endpoint to the signer; without an endpoint there is nothing to do."""

    def __init__(self, url: str | None, fetcher: Fetcher) -> None:
        self._url, self._fetcher = url, fetcher

    async def run(self, ports: Ports) -> int:
        """Fetch once; gives back how many documents the signer took."""
        if self._url is None:
            return 0
        problem = await self.ask(ports.workers, self._url)
        if problem is not None:
            # The last prices stay until they are too old; the signer's health says when that is.
            log.warning("prices were not taken", extra={"reason": problem})
        return int(problem is None)

    async def ask(self, workers: Workers, url: str) -> str | None:
        """Ask an address, and hand over what it says; a word for why nothing was taken."""
        try:
            answer = await self._fetcher.get(
                url, tenant=_DEPLOYMENT, most_bytes=MAX_DOCUMENT, headers={"Accept": "application/json"}
            )
        except NoAnswer as problem:
            return problem.problem
        if answer.status != 200:
            return "redirect" if 300 <= answer.status < 400 else "status"
        signature = answer.headers.get(SIGNATURE_HEADER, "")
        if len(signature) > MAX_SIGNATURE:
            return "signature"
        taken = await workers.tell(TakePrices(answer.body, signature), Origin(f"prices-{new_uuid()}"))
        return taken.problem


def way_to(url: str | None, *, loopback_allowed: bool) -> Outside:
    """Make the way to the operator's endpoint, the one host that may have a private address."""
    place = None if url is None else read_url(url)

    def is_endpoint(host: str, port: int, _address: str) -> bool:
        return place is not None and (host, port) == (place.host.strip("[]"), place.port or DEFAULT_PORTS[place.scheme])

    return Outside(loopback_allowed=loopback_allowed, private_allowed=is_endpoint)
