"""The limit of open files, which also limits connections."""

import logging
import sys

# Files other than connections: of the store, of sources, of libraries.
OWN = 200
# The fewest connections to try in any case.
LEAST = 20

log = logging.getLogger("tocsin.monitor")


def room_for(connections: int) -> int:
    """Raise the limit of open files for this many connections; returns how many are possible."""
    if sys.platform == "win32":
        return connections
    import resource

    wanted = connections + OWN
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return connections
    allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    if allowed == wanted:
        return connections
    room = max(LEAST, allowed - OWN)
    log.warning(
        "only %d connections are possible, not the %d of server.max_connections: the system allows %d open files "
        "(LimitNOFILE, ulimit -n)", room, connections, allowed,
    )  # fmt: skip
    return room
