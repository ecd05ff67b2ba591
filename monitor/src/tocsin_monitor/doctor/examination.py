"""All checks, one after the other."""

from collections.abc import Iterator

from tocsin_monitor.config import Settings
from tocsin_monitor.doctor.connectivity import check_connectivity
from tocsin_monitor.doctor.finding import Finding
from tocsin_monitor.doctor.machine import check_certificate, check_clock, check_disk, check_extras, check_files
from tocsin_monitor.doctor.stores import check_store


def examine(settings: Settings) -> Iterator[Finding]:
    """What each check finds. Nothing is changed, and nothing is sent but what it takes to connect."""
    yield from check_extras(settings)
    yield check_files(settings)
    yield from check_disk(settings)
    yield from check_clock()
    yield from check_store(settings)
    yield from check_certificate(settings.server)
    yield from check_connectivity(settings)
