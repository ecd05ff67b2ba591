"""The settings of the server, the store and the engine."""

import ipaddress
import re
from pathlib import Path
from typing import Self

from pydantic import Field, SecretStr, field_validator, model_validator

from tocsin_monitor.config.section import Seconds, Secret, Section, Url

DATABASES = ("postgresql://", "postgres://", "postgresql+psycopg://", "sqlite:///")


class ServerSettings(Section):
    """The HTTP server."""

    host: str = Field(
        default="127.0.0.1", min_length=1, description="The address to listen on; beyond loopback, a token is required."
    )
    port: int = Field(default=8710, ge=0, le=65535, description="The port; 0 for a free one.")
    tls_certificate: Path | None = Field(
        default=None, description="A certificate file (PEM): HTTPS instead of HTTP.", examples=["/etc/tocsin/tls.crt"]
    )
    tls_key: Path | None = Field(
        default=None, description="The certificate's key file (PEM).", examples=["/etc/tocsin/tls.key"]
    )
    allowed_hosts: tuple[str, ...] = Field(
        default=(),
        description="Further host names of the dashboard; with any, a token is required.",
        examples=[["monitor.example.com"]],
    )
    external_url: Url | None = Field(
        default=None,
        description="The dashboard's public address, used for links in alerts; with it, a token is required.",
        examples=["https://monitor.example.com"],
    )
    max_body_bytes: int = Field(default=8 * 2**20, ge=1024, le=2**30, description="The largest request body accepted.")
    max_bodies_bytes: int = Field(
        default=64 * 2**20,
        ge=1024,
        description="The memory for all request bodies together; beyond it, requests get 503.",
    )
    max_upload_bytes: int = Field(
        default=512 * 2**20, ge=1024, le=2**40, description="The largest history file accepted."
    )
    max_connections: int = Field(
        default=1000,
        ge=10,
        le=100_000,
        description="The most connections. At the limit, the one idle longest is closed.",
    )
    max_connections_per_address: int = Field(
        default=500, ge=1, description="The most connections per address; behind a proxy all clients share its address."
    )
    requests_per_second: float = Field(
        default=200.0, gt=0, description="Requests per second of one client; more get 429."
    )
    burst: int = Field(default=400, ge=1, description="How many requests one client may send at once.")

    @field_validator("allowed_hosts", mode="after")
    @classmethod
    def _names(cls, hosts: tuple[str, ...]) -> tuple[str, ...]:
        for host in hosts:
            # Anything but a name would never match, and its requests would be rejected for no visible reason.
            if not re.fullmatch(r"[A-Za-z0-9_.-]+|[0-9A-Fa-f:]+", host):
                raise ValueError(f"must be names or addresses without scheme, port or path, got {host!r}")
        return hosts

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if (self.tls_certificate is None) != (self.tls_key is None):
            raise ValueError("tls_certificate and tls_key go together: set both or neither")
        if self.max_bodies_bytes < self.max_body_bytes:
            raise ValueError(
                f"max_bodies_bytes must be at least max_body_bytes ({self.max_body_bytes}), got {self.max_bodies_bytes}"
            )
        return self

    @property
    def private(self) -> bool:
        """Whether only a browser on this machine is meant to reach it: no other name, and no proxy in front."""
        return self.loopback and self.external_url is None and not self.allowed_hosts

    @property
    def loopback(self) -> bool:
        """Whether it listens on loopback only; a proxy on this machine may still let others in."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


class StorageSettings(Section):
    """Where data are stored."""

    folder: Path = Field(default=Path("tocsin-data"), description="The data folder.")
    url: Secret | None = Field(
        default=None,
        description="A database to use instead of SQLite in the folder: postgresql://user:password@host/name.",
        examples=["postgresql://tocsin:change-me@127.0.0.1/tocsin"],
    )
    standby: bool = Field(
        default=False,
        description="Whether to wait on standby while another monitor uses the database. Needs PostgreSQL.",
    )
    keep_observations: Seconds = Field(default=90 * 86400.0, description="How long to keep observations.")
    keep_incidents: Seconds = Field(default=730 * 86400.0, description="How long to keep closed incidents.")

    @field_validator("url", mode="after")
    @classmethod
    def _database(cls, url: SecretStr | None) -> SecretStr | None:
        if url is not None and not url.get_secret_value().startswith(DATABASES):
            raise ValueError(f"must begin with one of {', '.join(DATABASES)}")
        return url

    @model_validator(mode="after")
    def _shared(self) -> Self:
        if self.standby and (self.url is None or self.url.get_secret_value().startswith("sqlite:")):
            raise ValueError(
                "standby needs a database that two monitors can share: set storage.url to one in PostgreSQL, "
                "postgresql://user:password@host/name (SQLite is for one monitor)"
            )
        return self


class EngineSettings(Section):
    """How observations are processed."""

    max_signals: int = Field(
        default=2000, ge=1, le=10**6, description="The most signals; each needs about half a megabyte of memory."
    )
    max_signal_bytes: int = Field(
        default=64 * 2**20, ge=2**20, description="The most memory for one signal's detector; more is rejected."
    )
    max_detector_bytes: int = Field(
        default=0, ge=0, description="The most memory for all detectors; 0 for half of the machine's."
    )
    max_waiting: int = Field(
        default=50_000, ge=1, description="The largest backlog of observations; beyond it, requests get 429."
    )
    snapshot_every: int = Field(default=200, ge=1, description="Store a signal's state every this many observations.")
    threads: int = Field(default=0, ge=0, le=256, description="Scoring threads; 0 for one per core.")
    models: Path | None = Field(
        default=None,
        description="A folder of models: over HTTP, a forecaster's options may name what is in it, and no other files.",
        examples=["/var/lib/tocsin/models"],
    )
    future_tolerance: Seconds = Field(default=300.0, description="How far ahead of the clock a time may be.")
    auto_create: bool = Field(default=True, description="Whether to create signals with their first observation.")
