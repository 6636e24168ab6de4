"""Both workers as one: a command declares which of them carries it out, so no caller can send it to the wrong one."""

from dataclasses import dataclass

from custody.kit import errors
from custody.kit.answers import Answered
from custody.kit.callers import Caller, Origin
from custody.protocol.client import SignerClient, SignerUnavailable
from custody.protocol.command import Command, R, WorkerName, declaration_of


class IdentityUnavailable(errors.Unavailable):
    """The service cannot check people and keys at the moment; nothing was done. Retry shortly."""


@dataclass
class Workers:
    """Asks the signer or identity, as the command declares."""

    signer: SignerClient
    identity: SignerClient

    async def ask(self, command: Command[R], caller: Caller) -> Answered[R]:
        """Ask in a caller's name."""
        try:
            return await self._of(command).ask(command, caller)
        except SignerUnavailable:
            raise self._away(command) from None

    async def tell(self, command: Command[R], origin: Origin) -> R:
        """Ask in nobody's name."""
        try:
            return await self._of(command).tell(command, origin)
        except SignerUnavailable:
            raise self._away(command) from None

    def only(self, worker: WorkerName) -> SignerClient:
        """One of them, for what each answers for itself."""
        return self.signer if worker == "signer" else self.identity

    async def close(self) -> None:
        """Close both connections."""
        await self.signer.close()
        await self.identity.close()

    def _of(self, command: Command[R]) -> SignerClient:
        (worker,) = declaration_of(type(command)).workers
        return self.only(worker)

    def _away(self, command: Command[R]) -> errors.Unavailable:
        return IdentityUnavailable() if self._of(command) is self.identity else SignerUnavailable()
