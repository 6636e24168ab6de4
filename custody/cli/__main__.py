"""`python -m custody.cli` is the `custody` command."""

import sys

from custody.cli.main import main

sys.exit(main())
