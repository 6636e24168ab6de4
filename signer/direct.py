"""An order that an agent, or a person in its place, asks for by their own token alone."""

from typing import ClassVar

from signer import evaluate
from signer.signing_attempt import Judged, Step, Way
from signer.signing_state import SigningState


class Direct(Way):
    """Signed, queued or refused as the rules say."""

    is_plain: ClassVar[bool] = True

    def __init__(self, signer: SigningState) -> None:
        self._signer = signer

    def sign(self, judged: Judged) -> Step:
        """Sign it; an answer where it cannot be broadcast without what a node knows."""
        return evaluate.sign(self._signer, judged)

    def queue(self, judged: Judged) -> Step:
        """Have it wait for a person."""
        return evaluate.queue(self._signer, judged)

    def refuse(self, judged: Judged) -> Step:
        """Remember that it was tried."""
        return evaluate.refuse(self._signer, judged)
