"""openapi-typescript makes types that `tsc --strict` takes as they come; openapi-fetch does the main job with them."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.callers import ADDRESS, Tenant
from tests.generators import installed

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(installed.missing() is not None, reason=installed.missing() or ""),
]
STRICT = ("--strict", "--exactOptionalPropertyTypes", "--noUncheckedIndexedAccess", "--target", "es2022")
MODULES = ("--module", "nodenext", "--moduleResolution", "nodenext", "--types", "node")


def run(*command: Any, cwd: Path) -> str:
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, capture_output=True, text=True, timeout=400, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def folder(contract: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the job, beside the types that were generated for it."""
    installed.install_node()
    made = tmp_path_factory.mktemp("typescript")
    (made / "node_modules").symlink_to(installed.HERE / "node_modules")
    (made / "package.json").write_text('{"type": "module"}')
    shutil.copy(installed.HERE / "job.ts", made)
    run(installed.NODE / "openapi-typescript", contract, "-o", made / "contract.d.ts", cwd=made)
    return made


def test_the_generated_types_compile_and_do_the_main_job(folder: Path, tenant: Tenant) -> None:
    run(installed.NODE / "tsc", *STRICT, *MODULES, "job.ts", cwd=folder)

    assert run("node", "job.js", tenant.base_url, tenant.key, ADDRESS, cwd=folder).strip() == "done"
