"""A monitor that speaks TLS itself."""

import socket
import ssl
import subprocess
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from tests.service.helpers import program
from tests.service.process import MonitorProcess


def make_certificate(folder: Path) -> tuple[Path, Path]:
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    made = [program("openssl"), "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=monitor"]
    made += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(made, check=True, capture_output=True)
    return certificate, key


@pytest.mark.slow
def test_handshakes_that_never_end_keep_out_nobody(tmp_path: Path) -> None:
    certificate, key = make_certificate(tmp_path)
    config = f'[server]\ntls_certificate = "{certificate}"\ntls_key = "{key}"\nmax_connections = 10\n'
    with MonitorProcess(tmp_path, config, certificate=certificate) as monitor, ExitStack() as stack:
        monitor.start()
        verify = ssl.create_default_context(cafile=certificate)
        for number in range(40):
            held = stack.enter_context(socket.create_connection(("127.0.0.1", monitor.port), 10))
            if number % 2:
                held.sendall(b"\x16\x03\x01\x02\x00\x01\x00")  # the beginning of a handshake
        assert httpx.get(f"{monitor.address}/healthz", verify=verify).status_code == 200
        assert httpx.get(f"{monitor.address}/api/v1/signals", verify=verify).status_code == 200
        monitor.stop()
        assert "Traceback" not in monitor.log.read_text()
