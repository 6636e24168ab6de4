"""Signing in and out, and what happens between two people at one screen."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from textual.screen import Screen

from console.application import Application
from console.dialogs.enrol import Enrol, Enrolment, RecoveryCodes
from console.dialogs.sign_out import SignOut
from console.dialogs.step_up import StepUp
from console.entry.sign_in_flow import Way
from console.screens.sign_in import SignIn
from console.wire.failures import Failure, MfaRequired, SignedOut
from console.work import work

# Signing in has a mode of its own: what one was doing, an open question with what was typed into it, waits untouched.
SIGN_IN_MODE: Final = "door"
FIRST: Final = "approvals"
_KEY_CANNOT: Final = "A tenant key has no second factor: press i to sign in as a person."
_READ_ONLY: Final = "You have none yet, and a read-only console cannot set one up: start it without --read-only."


class SessionControl:
    """The session of the person at the console: signs in, steps up, signs out."""

    def __init__(self, app: Application) -> None:
        self._app = app
        self._signing_in = False
        self._asking = asyncio.Lock()
        self._shown = 0

    def begin(self) -> None:
        """Sign in with what is there, or by a code."""
        self._app.add_mode(SIGN_IN_MODE, Screen)
        self._to_sign_in("", ("key", "kept"))

    def sign_in(self) -> None:
        """Become a person, where one is only the holder of a key."""
        person = self._app.person
        if person is None or self._signing_in:
            return
        if person.user is not None:
            self._app.tell(f"You are signed in as {person.shown}.")
        else:
            self._to_sign_in("", ("kept",), may_step_back=True)

    def sign_out(self) -> None:
        """Ask whether to end the session."""
        if self._app.person is None or self._signing_in:
            return
        if self._app.person.user is None:
            self._app.tell("You use the tenant key: no person is signed in.")
        else:
            self._app.push_screen(SignOut(), lambda said: None if said is None else self._leave(said))

    def signed_out(self, failure: Failure) -> bool:
        """Tell whether a failure means that the person must sign in again; then ask for that, once."""
        if not isinstance(failure, SignedOut):
            return False
        if not self._signing_in:
            person = self._app.person
            self._to_sign_in(failure.sentence, ("kept",) if person and person.user else ("key", "kept"))
        return True

    async def act[Result](self, request: Callable[[], Awaitable[Result]]) -> Result:
        """Do something; where a recent second factor is wanted, ask for it, then do it once more."""
        before = self._shown
        try:
            return await request()
        except MfaRequired as needed:
            credential = self._app.client.credential
            if credential is None or not credential.is_session:
                sentence = f"{needed.sentence} {_KEY_CANNOT}"
                raise MfaRequired(sentence, status=needed.status, code=needed.code, data=needed.data) from None
            if not needed.methods and self._app.client.read_only:
                raise Failure(f"{needed.sentence} {_READ_ONLY}") from None
            # Several may want it at once; one answer serves them all.
            async with self._asking:
                if before == self._shown:
                    if not await (self._stepped_up(needed) if needed.methods else self._enrol(self._seed)):
                        raise
                    self._shown += 1
        return await request()

    def enrol(self) -> None:
        """Set up an authenticator, or another in place of it."""
        person = self._app.person
        if person is not None and person.user is not None and not self._signing_in and not self._app.client.read_only:
            work(self._app, "enrol", self._enrolled_or_told)

    async def _enrolled_or_told(self) -> None:
        try:
            # Only the first needs no factor that is there already.
            if await self._enrol(lambda: self.act(self._seed)):
                self._app.tell("Your authenticator is set up.")
        except Failure as failure:
            if not self.signed_out(failure):
                self._app.tell(failure.sentence, "warning")

    async def _seed(self) -> Enrolment:
        return await self._app.client.send("POST", "/auth/mfa/totp/enroll", Enrolment)

    async def _stepped_up(self, needed: MfaRequired) -> bool:
        shown = await self._app.push_screen_wait(StepUp(needed))
        return shown is True

    async def _enrol(self, seed: Callable[[], Awaitable[Enrolment]]) -> bool:
        codes = await self._app.push_screen_wait(Enrol(await seed()))
        if codes:
            await self._app.push_screen_wait(RecoveryCodes(codes))
        return codes is not None

    def _leave(self, sentence: str) -> None:
        self._to_sign_in(sentence, (), start_over=True)

    def _to_sign_in(
        self, reason: str, ways: tuple[Way, ...], *, may_step_back: bool = False, start_over: bool = False
    ) -> None:
        self._signing_in = True
        sign_in = SignIn(reason, ways=ways, may_step_back=may_step_back)
        work(self._app, "sign-in", self._show_sign_in, sign_in, start_over)

    async def _show_sign_in(self, sign_in: SignIn, start_over: bool) -> None:
        app = self._app
        before, back = app.person, app.current_mode if app.person else FIRST
        app.person = None
        app.queue_monitor.stop()
        await app.switch_mode(SIGN_IN_MODE)
        if start_over:
            await self._start_anew()
            back = FIRST
        signed_in = await app.push_screen_wait(sign_in)
        if signed_in is None:
            app.person = before
        else:
            if before is not None and not start_over and not signed_in.person.is_same(before):
                # Nothing of one tenant may be seen, or decided, by somebody of another.
                await self._start_anew()
                back = FIRST
            app.client.credential, app.person = signed_in.credential, signed_in.person
        self._signing_in = False
        app.queue_monitor.start()
        await app.switch_mode(back)
        app.redraw_heading()

    async def _start_anew(self) -> None:
        app = self._app
        for place, screen in app.MODES.items():
            await app.remove_mode(place)
            app.add_mode(place, screen)
        app.queue_monitor.restart()
        app.clear_notifications()
        app.waiting, app.chosen_agent = None, None
