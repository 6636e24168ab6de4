"""Signing in and out; profiles, tokens and their renewal are shared with the console."""

import asyncio
import sys
import webbrowser

import click

from console.entry.device_flow import DeviceCode, Ended
from console.entry.profiles import keep_profile
from console.entry.settings import DEFAULT
from console.entry.sign_in_flow import SignedIn, SignInFlow, Wait
from console.wire.failures import Failure
from tenant_command.call import Call
from tenant_command.command import command
from tenant_command.factor import KEY_HAS_NO_FACTOR
from tenant_command.factor import step_up as show
from words.texts.moments import span


@command("login", example="custody login --url https://custody.example --tenant acme --profile work", new_profile=True)
@click.option("--again", is_flag=True, help="Sign in once more, though somebody is signed in here.")
@click.option("--no-browser", is_flag=True, help="Print the address, and open nothing.")
async def login(call: Call, *, again: bool, no_browser: bool) -> None:
    """Sign in as a person, in a browser.

    It shows a code, which you approve there. The session is kept in the system's keyring, else in a file of yours, and
    the console uses it too. A profile that is not known yet is written into console.toml.
    """
    flow = SignInFlow(call.settings, call.store, call.client, _pause(call))
    found = None if again else await flow.with_stored_credential(("kept",))
    if found is None:
        code = await flow.code()
        _tell(call, code, open_it=not no_browser)
        try:
            found = await flow.with_code(code)
        except Ended as ended:
            raise Failure(f"{ended} Get another with `custody login`.") from None
    _keep(call, found)
    data = {"user": found.person.user, "tenant": found.person.tenant, "role": found.person.role}
    call.out.show(data, f"Signed in to {call.settings.url} as {found.person.shown}.")


@command("logout", example="custody logout --profile work")
async def logout(call: Call) -> None:
    """End the session, here and at the service.

    The consoles of the profile are signed out with it.
    """
    kept = await asyncio.to_thread(call.store.read)
    if kept is None:
        call.out.show({"signedOut": False}, "Nobody was signed in here.")
        return
    call.use(kept)
    try:
        await call.client.send("POST", "/auth/logout", object)
    except Failure as failure:
        call.out.warn(f"The service could not be told: {failure.sentence} The session there ends by itself.")
    await asyncio.to_thread(call.store.forget)
    call.out.show({"signedOut": True}, "Signed out.")


@command("whoami", example="custody whoami --json")
async def whoami(call: Call) -> None:
    """Print who asks, in which tenant and role."""
    person = await call.person()
    tenant = person.tenant or await call.tenant()
    data = {"url": call.settings.url, "user": person.user, "tenant": tenant, "role": person.role}
    who = person.shown if person.user else f"with the key of tenant {tenant}"
    call.out.show(data, f"{call.settings.url}: {who}")


@command("step-up", example="oathtool --totp -b @seed | custody step-up")
async def step_up(call: Call) -> None:
    """Show a second factor for the next commands.

    They need none for as long as the tenant says, five minutes unless it says otherwise. The code is asked for, or read
    from standard input where that is no terminal.
    """
    await call.identify()
    if call.client.credential is None or not call.client.credential.is_session:
        raise Failure(KEY_HAS_NO_FACTOR)
    is_terminal = sys.stdin.isatty()
    said = call.out.answer("The code of your authenticator, or a recovery code") if is_terminal else sys.stdin.read(256)
    await show(call.client, said)
    call.out.show({"shown": True}, "The second factor was taken.")


def _keep(call: Call, found: SignedIn) -> None:
    """Write a profile that was named and is not known, so that it need not be spelt out again."""
    if call.settings.profile != DEFAULT and found.person.tenant:
        keep_profile(call.settings.folder, call.settings.profile, call.settings.url, found.person.tenant)


def _tell(call: Call, code: DeviceCode, *, open_it: bool) -> None:
    lines = [f"Open {code.address} in a browser" + ("" if code.is_in_address else f" and type {code.user_code}") + "."]
    if code.is_in_address:
        lines.append(f"The page shows the code {code.user_code}. It is good for {span(code.lasts)}.")
    for line in lines:
        call.out.warn(line)
    # What a service names is opened only where it is a page.
    if open_it and sys.stdin.isatty() and code.address.startswith(("https://", "http://")):
        webbrowser.open(code.address)


def _pause(call: Call) -> Wait:
    async def pause(seconds: float, trouble: str) -> None:
        if trouble:
            call.out.warn(trouble)
        call.out.doing("Waiting until the code is approved")
        await asyncio.sleep(seconds)

    return pause
