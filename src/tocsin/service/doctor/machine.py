"""The machine: its clock, its disk, its limits, and what is installed on it."""

import shutil
import subprocess
import sys
from collections.abc import Iterator

from tocsin.forecasting import available_forecasters
from tocsin.service.config import Settings
from tocsin.service.doctor.finding import Finding, failed, ok, warning
from tocsin.service.open_files import OWN
from tocsin.service.store.facts import file_of

# Bytes that are left on the disk.
FEW, TOO_FEW = 2**30, 100 * 2**20
_PATIENCE = 10.0


def check_extras(settings: Settings) -> Iterator[Finding]:
    """Whether the libraries are there that the settings need."""
    missing = []
    for section, group in (("sources", settings.sources), ("sinks", settings.sinks)):
        for place, one in group.each():
            try:
                one.load()
            except ImportError as error:
                missing.append(f"{section}.{place} needs {error.name or error}")
    missing += missing_forecasters(settings)
    if missing:
        yield failed(
            "libraries", "; ".join(missing), "install what is missing: see the extras in docs/monitor.md and `pip`"
        )
    else:
        yield ok("libraries", "everything that the settings need is installed")


def missing_forecasters(settings: Settings) -> list[str]:
    """What the forecasters of the settings and their templates need that is not installed."""
    given = [settings.detector, *(template.settings for template in settings.templates)]
    wanted = {one["forecaster"] for one in given if isinstance(one.get("forecaster"), str)}
    return [
        f"the forecaster {name!r} needs {', '.join(one.missing)} (tocsin[{one.extra}])"
        for name, one in available_forecasters().items()
        if name in wanted and one.missing
    ]


def check_files(settings: Settings) -> Finding:
    """Whether as many files may be open as connections need."""
    if sys.platform == "win32":
        return ok("open files", "Windows has no such limit")
    import resource

    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = settings.server.max_connections + OWN
    if most != resource.RLIM_INFINITY and most < wanted:
        return warning(
            "open files",
            f"the system allows {most} open files, and server.max_connections needs {wanted}",
            "raise LimitNOFILE of the service, or ulimit -n, or lower server.max_connections",
        )
    return ok("open files", "enough are allowed" if most == resource.RLIM_INFINITY else f"{most} are allowed")


def check_disk(settings: Settings) -> Iterator[Finding]:
    """Whether there is room for the data. The disk of a database server cannot be seen from here."""
    file = file_of(settings.store_url)
    if file is None:
        return
    folder = file.absolute().parent
    there = next(one for one in (folder, *folder.parents) if one.exists())
    left = shutil.disk_usage(there).free
    said = f"{left / 2**30:,.1f} GiB are free at {folder}"
    if left < TOO_FEW:
        yield failed("disk space", said, "make room: the monitor accepts nothing once the disk is full")
    elif left < FEW:
        yield warning("disk space", said, "make room, or lower storage.keep_observations")
    else:
        yield ok("disk space", said)


def check_clock() -> Iterator[Finding]:
    """Whether the clock is kept right, where systemd can tell."""
    program = shutil.which("timedatectl")
    if program is None:
        return
    asked = [program, "show", "--property=NTPSynchronized", "--value"]
    try:
        done = subprocess.run(asked, capture_output=True, text=True, timeout=_PATIENCE, check=True)  # noqa: S603 ours
    except (OSError, subprocess.SubprocessError):
        return  # as in a container, where nobody keeps the time
    if done.stdout.strip() == "yes":
        yield ok("clock", "it is synchronised")
    else:
        yield warning(
            "clock",
            "it is not synchronised with a time server",
            "turn on NTP (timedatectl set-ntp true): observations ahead of the clock are refused",
        )
