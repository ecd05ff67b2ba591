"""Checks whether the monitor in this container is alive, over HTTP or HTTPS as its settings say. Exits with 0 or 1.
It uses only the standard library: it runs every few seconds and must be cheap on a busy machine.
"""

import os
import ssl
import sys
import tomllib
import urllib.request
from pathlib import Path

ANY = {"0.0.0.0": "127.0.0.1", "::": "::1", "localhost": "127.0.0.1"}  # noqa: S104 nothing listens here


def server_settings() -> dict[str, str]:
    """The server settings needed here: from the file, overridden by environment variables."""
    file = os.environ.get("TOCSIN_CONFIG")
    found = tomllib.loads(Path(file).read_text(encoding="utf-8")).get("server", {}) if file else {}
    given = {name: os.environ.get(f"TOCSIN_SERVER__{name.upper()}") for name in ("host", "port", "tls_certificate")}
    return {**found, **{name: value for name, value in given.items() if value}}


def address() -> str:
    """The address of the monitor's liveness probe."""
    server = server_settings()
    host = ANY.get(server.get("host", "127.0.0.1"), server.get("host", "127.0.0.1"))
    scheme = "https" if server.get("tls_certificate") else "http"
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{server.get('port', 8710)}/healthz"


def main() -> int:
    """Call the probe."""
    # The certificate has the public name, not the loopback address used here.
    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    try:
        with urllib.request.urlopen(address(), timeout=4, context=trusting) as answer:  # noqa: S310 http or https
            return 0 if answer.status == 200 else 1
    except (OSError, ValueError) as error:
        sys.stderr.write(f"the monitor does not respond: {error}\n")
        return 1


if __name__ == "__main__":
    sys.exit(main())
