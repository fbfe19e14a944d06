"""A fresh Python environment with this clone, and the noticeboard installed beside it."""

from __future__ import annotations

import shutil
import site
import subprocess
import sys
import venv
from pathlib import Path

from tests.shell import REPOSITORY

NOTICEBOARD = REPOSITORY / "tests" / "plugins" / "noticeboard"


def make_environment(folder: Path) -> Path:
    """Return the Python of an environment in that folder."""
    venv.create(folder / "env", with_pip=False, symlinks=True)
    (site_packages,) = folder.glob("env/lib/python3*/site-packages")
    borrowed = [*site.getsitepackages(), str(REPOSITORY)]
    (site_packages / "borrowed.pth").write_text("\n".join(borrowed))
    source = shutil.copytree(NOTICEBOARD, folder / "source")  # building leaves litter there
    python = folder / "env" / "bin" / "python"
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "--python", str(python), "install"),
            *("--no-deps", "--no-index", "--no-build-isolation", str(source)),
        ],
        check=True,
        capture_output=True,
    )
    return python
