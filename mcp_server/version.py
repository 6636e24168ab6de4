"""The version that clients are told: the service's, known in a checkout too, where no package is installed."""

from typing import Final

VERSION: Final = "1.0.0"
