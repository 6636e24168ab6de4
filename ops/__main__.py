"""`python -m ops` is the `custody` command."""

import sys

from ops.main import main

sys.exit(main())
