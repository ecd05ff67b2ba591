"""A monitor that speaks TLS itself."""

import socket
import ssl
import subprocess
import time
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID

from tests.service.helpers import program
from tests.service.process import MonitorProcess


def make_certificate(folder: Path) -> tuple[Path, Path]:
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    made = [program("openssl"), "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=monitor"]
    made += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(made, check=True, capture_output=True)
    return certificate, key


@pytest.mark.full
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


def write_certificate(
    certificate: Path, key: Path, name: str, days: float = 30, *, before: float = 60, elliptic: bool = False
) -> None:
    """A certificate for this machine, as a renewal writes it: one file after the other."""
    secret = ec.generate_private_key(ec.SECP256R1()) if elliptic else rsa.generate_private_key(65537, 2048)
    who = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(who)
        .issuer_name(who)
        .public_key(secret.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=before))
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .sign(secret, hashes.SHA256())
    )
    form = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    key.write_bytes(secret.private_bytes(serialization.Encoding.PEM, *form))


def served_by(port: int) -> str:
    """The name in the certificate that a client is shown."""
    asking = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    asking.check_hostname, asking.verify_mode = False, ssl.CERT_NONE
    with socket.create_connection(("127.0.0.1", port), 10) as plain, asking.wrap_socket(plain) as secure:
        shown = secure.getpeercert(binary_form=True)
        assert shown is not None
        (name,) = x509.load_der_x509_certificate(shown).subject.get_attributes_for_oid(NameOID.COMMON_NAME)
        return str(name.value)


@pytest.mark.full
def test_a_renewed_certificate_is_used_without_a_restart_and_a_broken_one_is_not(tmp_path: Path) -> None:
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    write_certificate(certificate, key, "first")
    config = f'[server]\ntls_certificate = "{certificate}"\ntls_key = "{key}"\n'

    def wait_for(condition) -> None:  # type: ignore[no-untyped-def]
        until = time.monotonic() + 120
        while not condition():
            assert time.monotonic() < until, monitor.log.read_text()
            time.sleep(0.1)

    with MonitorProcess(tmp_path, config, certificate=certificate) as monitor:
        monitor.start()
        assert served_by(monitor.port) == "first"
        good = key.read_bytes()
        key.write_bytes(b"-----BEGIN PRIVATE KEY-----\nnothing\n-----END PRIVATE KEY-----\n")
        wait_for(lambda: "cannot be used, and the ones before stay in use" in monitor.log.read_text())
        assert served_by(monitor.port) == "first"
        assert good not in monitor.log.read_bytes()
        # Of another kind, so that both could be on offer if the old one stayed.
        write_certificate(certificate, key, "second", elliptic=True)
        wait_for(lambda: served_by(monitor.port) == "second")
        renewed = ssl.create_default_context(cafile=certificate)
        assert httpx.get(f"{monitor.address}/healthz", verify=renewed).status_code == 200
        monitor.stop()
        assert "Traceback" not in monitor.log.read_text()
