"""Temporary files: how much room they may take, and those that a killed process left."""

import os
import re
import shutil
import tempfile
from pathlib import Path

from tocsin.data.problems import DataError

#: Bytes that stay free on a disk for what must be stored there.
MUST_STAY_FREE = 2**29


def check_room(more: int, folder: str | None = None) -> None:
    """DataError if a temporary file may not grow by so many bytes; the folder is that of all temporary files."""
    place = folder or tempfile.gettempdir()
    left = shutil.disk_usage(place).free
    if left - more < MUST_STAY_FREE:
        raise DataError(
            f"there is no room for a temporary file in {place}: {left / 2**20:,.0f} MB are free, and "
            f"{MUST_STAY_FREE / 2**20:,.0f} MB must stay free"
        )


def clear_leftovers(folder: Path, before: str, after: str) -> None:
    """Remove files and folders whose names have the number of a process that no longer runs between these texts."""
    named = re.compile(re.escape(before) + r"([0-9]{1,9})" + re.escape(after))
    for path in folder.iterdir():
        found = named.match(path.name)
        # In a container every process may have the same number: this one has left nothing yet.
        if found is not None and (int(found[1]) == os.getpid() or not _runs(int(found[1]))):
            shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass  # somebody else's
    return True
