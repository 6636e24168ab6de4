"""Text messages through a gateway of the operator's: `POST` of `{"to": "+...", "text": "..."}` as JSON."""

import httpx

from custody.notifications.background import Background
from custody.notifications.hourly import Hourly

SECONDS = 15.0


class Sms:
    """Sends codes as text messages, at most `per_hour` of them (0: as many as there are).

    A failure is logged, never shown. The gateway's address may carry its key.
    """

    def __init__(self, url: str, per_hour: int) -> None:
        self._url = url
        self._hourly = Hourly(per_hour)
        self._http = httpx.AsyncClient(timeout=SECONDS, follow_redirects=False, trust_env=False)
        self._background = Background("sms")

    def __repr__(self) -> str:
        return "Sms()"

    def send_code(self, number: str, code: str, *, enrols: bool) -> None:
        """Begin to send a code, or raise TooManyMessages; `enrols`: nobody has shown yet that the number is theirs."""
        self._hourly.count(number, enrols=enrols)
        self._background.send(self._send(number, f"{code} is your Custody code. It works once, for ten minutes."))

    async def close(self) -> None:
        """Wait for messages under way, a little."""
        await self._background.close()
        await self._http.aclose()

    async def _send(self, number: str, text: str) -> None:
        answer = await self._http.post(self._url, json={"to": number, "text": text})
        answer.raise_for_status()
