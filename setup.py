"""Building a wheel, as pyproject.toml says it, with the commit that it is made from written into it."""

import runpy
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py


class BuildWithCommit(build_py):
    """Copies the packages, and writes what `custody --version` says."""

    def run(self) -> None:
        """Build."""
        super().run()
        here = Path(__file__).parent
        commit = runpy.run_path(str(here / "custody/version.py"))["commit"]()
        Path(self.build_lib, "custody/commit").write_text(f"{commit}\n")


setup(cmdclass={"build_py": BuildWithCommit})
