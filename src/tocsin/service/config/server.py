"""The settings of the server, the store and the engine."""

import ipaddress
import re
from pathlib import Path
from typing import Self

from pydantic import Field, SecretStr, field_validator, model_validator

from tocsin.service.config.section import Seconds, Secret, Section, Url

DATABASES = ("postgresql://", "postgres://", "postgresql+psycopg://", "sqlite:///")


class ServerSettings(Section):
    """The HTTP server."""

    host: str = Field(
        default="127.0.0.1", min_length=1, description="The address to listen on; beyond loopback, tokens come first."
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
        description="More names under which the page may be asked for; with any, a token is needed.",
        examples=[["monitor.example.com"]],
    )
    external_url: Url | None = Field(
        default=None,
        description="How people reach the page: links in alerts begin with it. With it, a token is needed.",
        examples=["https://monitor.example.com"],
    )
    max_body_bytes: int = Field(default=8 * 2**20, ge=1024, le=2**30, description="The largest request that is read.")
    max_bodies_bytes: int = Field(
        default=64 * 2**20, ge=1024, description="The most of all requests together that is held at once; more get 503."
    )
    max_upload_bytes: int = Field(
        default=512 * 2**20, ge=1024, le=2**40, description="The largest file of history that is taken."
    )
    max_connections: int = Field(
        default=1000,
        ge=10,
        le=100_000,
        description="The most connections. When there are as many, the one that waits longest makes room.",
    )
    max_connections_per_address: int = Field(
        default=500, ge=1, description="The same for one address; behind a proxy all clients have its address."
    )
    requests_per_second: float = Field(default=200.0, gt=0, description="Requests of one client; more get 429.")
    burst: int = Field(default=400, ge=1, description="How many requests of one client may come at once.")

    @field_validator("allowed_hosts", mode="after")
    @classmethod
    def _names(cls, hosts: tuple[str, ...]) -> tuple[str, ...]:
        for host in hosts:
            # One that is more than a name would never fit, and its requests be refused for no visible reason.
            if not re.fullmatch(r"[A-Za-z0-9_.-]+|[0-9A-Fa-f:]+", host):
                raise ValueError(f"must be names or addresses without scheme, port or path, got {host!r}")
        return hosts

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if (self.tls_certificate is None) != (self.tls_key is None):
            raise ValueError("tls_certificate and tls_key go together: give both or none")
        if self.max_bodies_bytes < self.max_body_bytes:
            raise ValueError(
                f"max_bodies_bytes must be at least max_body_bytes ({self.max_body_bytes}), got {self.max_bodies_bytes}"
            )
        return self

    @property
    def private(self) -> bool:
        """Whether nobody but a browser on this machine is meant to reach it: no other name, and no proxy before it."""
        return self.loopback and self.external_url is None and not self.allowed_hosts

    @property
    def loopback(self) -> bool:
        """Whether it listens to this machine only; a proxy on this machine may let in others."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


class StorageSettings(Section):
    """Where everything is kept."""

    folder: Path = Field(default=Path("tocsin-data"), description="The data folder.")
    url: Secret | None = Field(
        default=None,
        description="A database instead of SQLite in the folder: postgresql://user:password@host/name.",
        examples=["postgresql://tocsin:change-me@127.0.0.1/tocsin"],
    )
    keep_observations: Seconds = Field(default=90 * 86400.0, description="How long observations are kept.")
    keep_incidents: Seconds = Field(default=730 * 86400.0, description="How long incidents that are over are kept.")

    @field_validator("url", mode="after")
    @classmethod
    def _database(cls, url: SecretStr | None) -> SecretStr | None:
        if url is not None and not url.get_secret_value().startswith(DATABASES):
            raise ValueError(f"must begin with one of {', '.join(DATABASES)}")
        return url


class EngineSettings(Section):
    """How observations are worked on."""

    max_signals: int = Field(
        default=2000, ge=1, le=10**6, description="The most signals; each takes about half a megabyte of memory."
    )
    max_signal_bytes: int = Field(
        default=64 * 2**20, ge=2**20, description="The most memory of one signal's detector; more is refused."
    )
    max_detector_bytes: int = Field(
        default=0, ge=0, description="The most memory of all detectors together; 0 for half of what the machine has."
    )
    max_waiting: int = Field(default=50_000, ge=1, description="The most observations waiting; more get 429.")
    snapshot_every: int = Field(default=200, ge=1, description="A signal's state is stored after so many observations.")
    threads: int = Field(default=0, ge=0, le=256, description="Threads that score; 0 for one per core.")
    future_tolerance: Seconds = Field(default=300.0, description="How far ahead of the clock a time may be.")
    auto_create: bool = Field(default=True, description="Whether signals appear with their first observation.")
