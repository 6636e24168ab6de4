"""`custody console`: read the settings, then show the console here or in a browser."""

import os
import sys

from console.app import Console
from console.settings import BadSetting, load


def main() -> int:
    """Run it, and give the exit status."""
    try:
        settings = load(sys.argv[1:], os.environ)
    except BadSetting as problem:
        print(f"custody console: {problem}", file=sys.stderr)
        return 2
    Console(settings).run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
