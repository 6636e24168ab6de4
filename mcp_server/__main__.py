"""`custody mcp`: give a model an agent's tools, over standard input and output or by HTTP."""

import os
import sys

from mcp_server.settings import BadSetting, load
from mcp_server.version import VERSION


def main() -> int:
    """Run it, and give the exit status."""
    arguments = sys.argv[1:]
    try:
        if arguments[:1] == ["install"]:
            from mcp_server.install import main as install  # noqa: PLC0415

            return install(arguments[1:], os.environ)
        settings = load(arguments, os.environ)
    except BadSetting as problem:
        print(f"custody mcp: {problem}", file=sys.stderr)
        return 2
    if settings.port is not None:
        from mcp_server import http  # noqa: PLC0415 - what the other form loads, this one need not

        http.run(settings, VERSION)
        return 0
    if settings.token is not None:
        print(
            "custody mcp: SERVICE_AGENT_TOKEN can be read by other programs of this user; a file is better: "
            "SERVICE_AGENT_TOKEN_FILE",
            file=sys.stderr,
        )
    from mcp_server import stdio  # noqa: PLC0415

    stdio.run(settings, VERSION)
    return 0


if __name__ == "__main__":
    sys.exit(main())
