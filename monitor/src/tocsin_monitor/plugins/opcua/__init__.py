"""OPC UA: the settings of its source."""

from pathlib import Path
from typing import Literal, Self

from pydantic import Field, model_validator

from tocsin_monitor.config.kinds import SourceSettings
from tocsin_monitor.config.section import Name, Seconds, Secret, Section


class OpcUaNode(Section):
    """A variable of an OPC UA server, and its signal."""

    node: str = Field(
        min_length=1,
        description="Its id, such as 'ns=2;s=Pump.Flow', or its path below Objects, such as '2:Plant/2:Flow'.",
        examples=["ns=2;s=Pump.Flow"],
    )
    signal: str | None = Field(default=None, description="The signal's name; by default the node.", examples=["flow"])


class OpcUaSourceSettings(SourceSettings):
    """Observations from an OPC UA server."""

    implementation = "tocsin_monitor.plugins.opcua.source:OpcUaSource"
    extra = "opcua"
    name: Name = Field(description="Its name in metrics and logs.", examples=["plc"])
    url: str = Field(
        default="opc.tcp://127.0.0.1:4840", pattern=r"^opc\.tcp://[^@]+$", description="The server's address."
    )
    nodes: tuple[OpcUaNode, ...] = Field(min_length=1, description="The variables to subscribe to.")
    interval: Seconds = Field(default=1.0, description="How often the server samples and sends.")
    queue: int = Field(
        default=1000,
        ge=1,
        le=10**6,
        description="How many values of a node the server keeps while the monitor is busy.",
    )
    history: bool = Field(
        default=False, description="Whether to read what was missed from the server's history after an interruption."
    )
    username: str | None = Field(default=None, description="The user name.", examples=["tocsin"])
    password: Secret | None = Field(default=None, description="The password.", examples=["change-me"])
    policy: Literal["none", "Basic256Sha256", "Aes128Sha256RsaOaep", "Aes256Sha256RsaPss"] = Field(
        default="none", description="The security policy: none, Basic256Sha256 or one of the Aes policies."
    )
    encrypt: bool = Field(default=True, description="Whether messages are encrypted, not only signed, with a policy.")
    certificate: Path | None = Field(
        default=None, description="Our certificate, for a policy.", examples=["/etc/tocsin/opcua.der"]
    )
    key: Path | None = Field(default=None, description="Its private key.", examples=["/etc/tocsin/opcua.pem"])
    server_certificate: Path | None = Field(
        default=None,
        description="The server's certificate; by default the one that it shows is trusted.",
        examples=["/etc/tocsin/plc.der"],
    )
    application_uri: str = Field(default="urn:tocsin:monitor", description="Our URI, which our certificate names.")
    timeout: Seconds = Field(default=10.0, description="How long to wait for a reply.")

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.policy != "none" and (self.certificate is None or self.key is None):
            raise ValueError(f"policy {self.policy} needs certificate and key")
        return self
