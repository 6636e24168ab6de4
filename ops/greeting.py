"""The greeting of `custody up` once all is there: addresses, keys, and three commands to try."""

import shlex
import sys
from pathlib import Path

from custody.kit import metrics_address
from ops.mailbox import FILE, Mailbox
from ops.settings import Settings


def greeting(settings: Settings, chain_url: str | None, mailbox: Mailbox | None = None, *, first: bool) -> str:
    """The whole text; every command in it can be pasted into another terminal in the same folder."""
    url, home = settings.api_url, settings.home
    platform_key, master_key = _short(settings.platform_key_file), _short(settings.master_key_file)
    metrics = "  ".join(f"{metrics_address.local_url(host, port)}/metrics" for _, host, port in settings.metrics_ports)
    chain = "as you configured"
    if chain_url:
        chain = f"""{chain_url}   (id 31337, in memory, play money)
                 It starts empty each time. A payment that waits from before needs its
                 wallet funded again: `dev_fund`, in docs/api.md, Play money."""
    mail = ""
    if mailbox:
        # Its address lets everybody read who knows it: a terminal forgets, a file does not.
        shown = mailbox.page_url if sys.stderr.isatty() else f"at the address in {_short(home / FILE)}"
        mail = f"  mail           {shown}   (sign-in codes; none is sent)\n"
    made = " It was created just now." if first else ""
    return f"""
  API            {url}
  contract       {url}/docs to read, {url}/openapi.json for programs
  proxy          {settings.proxy_url}
                 Clients must trust {_short(settings.proxy_ca_file)}; `custody run` sets that up.
  metrics        {metrics}
{mail}  chain          {chain}
  platform key   {platform_key}
  master key     {master_key}
                 Copy it to a safe place: without it every wallet is lost.{made}
  logs           {_short(home / "log")}

Try, in another terminal:
  # Decide what waits for a person:
  {console(settings, url)}
  curl -s {url}/ready
  curl -s {url}/platform/tenants -H "X-Service-Platform-Key: $(cat {shlex.quote(str(platform_key))})" \\
    -H 'Content-Type: application/json' -d '{{"id": "acme", "name": "Acme"}}'
  {_command(settings)} {"demo" if chain_url else "doctor"}

Ctrl-C stops everything."""


def console(settings: Settings, url: str) -> str:
    """The command that shows the queue of the walk-through's tenant; before any demo, of the person who signs in."""
    key_file = demo_key_file(settings)
    given = [f"SERVICE_KEY_FILE={shlex.quote(str(_short(key_file)))}"] if key_file.exists() else []
    # Its own default is where nobody chose a port.
    given += [f"SERVICE_URL={url}"] if url != "http://127.0.0.1:3200" else []
    return " ".join([*given, _custody(), "console"])


def demo_key_file(settings: Settings) -> Path:
    """Name where the walk-through keeps its tenant's key, readable by its owner alone."""
    return settings.home / "demo" / "tenant.key"


def _custody() -> str:
    return shlex.quote(str(_short(Path(sys.prefix, "bin", "custody"))))


def _command(settings: Settings) -> str:
    command = _custody()
    # The other terminal does not have our environment, and the command must find this very state folder.
    default = settings.home == Path.cwd() / ".custody"
    return command if default else f"SERVICE_HOME={shlex.quote(str(settings.home))} {command}"


def _short(path: Path) -> Path:
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path
