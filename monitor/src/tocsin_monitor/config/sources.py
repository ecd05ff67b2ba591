"""The settings of sources: where observations come from, besides HTTP."""

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self

from pydantic import Field, field_validator, model_validator

from tocsin_monitor.config.kinds import KindGroup, SourceSettings, group_of
from tocsin_monitor.config.section import (
    Name,
    Seconds,
    Secret,
    Section,
    Topic,
    TopicOrNone,
    Url,
    check_placeholders,
    placeholders,
)


class MqttBroker(Section):
    """The connection to a broker."""

    host: str = Field(default="127.0.0.1", min_length=1, description="The broker's host.")
    port: int = Field(default=1883, ge=1, le=65535, description="Its port.")
    username: str | None = Field(default=None, description="The user name.", examples=["tocsin"])
    password: Secret | None = Field(default=None, description="The password.", examples=["change-me"])
    tls: bool = Field(default=False, description="Whether to use TLS.")
    ca_file: Path | None = Field(
        default=None, description="Trusted certificates, if not the system's.", examples=["/etc/tocsin/ca.crt"]
    )
    client_id: str | None = Field(
        default=None,
        description="The client id; the broker queues messages under it while the monitor is offline.",
        examples=["tocsin-plant"],
    )


class MqttSourceSettings(MqttBroker, SourceSettings):
    """Observations from an MQTT broker."""

    implementation = "tocsin_monitor.sources.mqtt:MqttSource"
    name: Name = Field(description="Its name in metrics and logs.", examples=["plant"])
    topics: tuple[str, ...] = Field(
        description="Topic patterns, with + and #.", min_length=1, examples=[["plant/+/vibration"]]
    )
    signal: str = Field(
        default="{topic}",
        description="The signal's name: {topic}, or its levels {0}, {1}, ...; with {value}, each number is a signal.",
    )
    value: tuple[str, ...] = Field(
        default=(),
        description="Path of the numbers in a JSON message, * for all names; empty for a plain number.",
        examples=[["value"]],
    )
    time: str | None = Field(
        default=None,
        description="Path of the time in a JSON message; by default the time of arrival.",
        examples=["time"],
    )
    status_topic: Topic = Field(
        default="tocsin/status", description="Retained status: 'online', and 'offline' as last will."
    )
    results_topic: TopicOrNone = Field(
        default="tocsin/results", description="Verdicts are published under this topic; empty for none."
    )

    @field_validator("signal", mode="after")
    @classmethod
    def _from_topic(cls, signal: str) -> str:
        return check_placeholders(
            signal, "use {topic}, its levels {0}, {1}, ... or {value}", "topic", "value", numbers=True
        )


class SparkplugSourceSettings(MqttBroker, SourceSettings):
    """Observations from Sparkplug B nodes at an MQTT broker."""

    implementation = "tocsin_monitor.sources.sparkplug:SparkplugSource"
    extra = "protobuf"
    name: Name = Field(description="Its name in metrics and logs.", examples=["sparkplug"])
    groups: tuple[str, ...] = Field(default=(), description="Groups of nodes; by default all.", examples=[["plant"]])
    metrics: tuple[str, ...] = Field(
        default=("*",), min_length=1, description="Which metrics, by name: patterns with * and ?."
    )
    signal: str = Field(
        default="{group}/{node}/{device}/{metric}",
        description="The signal's name: {group}, {node}, {device} and {metric}.",
    )
    rebirth: bool = Field(default=True, description="Whether to ask nodes for a birth where one was missed.")

    @field_validator("signal", mode="after")
    @classmethod
    def _from_metric(cls, signal: str) -> str:
        names = ("group", "node", "device", "metric")
        return check_placeholders(signal, "use {group}, {node}, {device} or {metric}", *names)

    @field_validator("groups", mode="after")
    @classmethod
    def _no_patterns(cls, groups: tuple[str, ...]) -> tuple[str, ...]:
        for group in groups:
            if not group or set(group) & set("+#/\0"):
                raise ValueError(f"a group must be a name without +, # and /, got {group!r}")
        return groups


class PrometheusQuery(Section):
    """One query and its signals."""

    query: str = Field(
        description="PromQL; each series of its result is a signal.", min_length=1, examples=["node_load1"]
    )
    signal: str | None = Field(
        default=None,
        description="The signal's name, such as 'load/{instance}'; by default all labels.",
        examples=["load/{instance}"],
    )
    step: Seconds = Field(default=60.0, description="The time between observations.")

    @field_validator("signal", mode="after")
    @classmethod
    def _from_labels(cls, signal: str | None) -> str | None:
        if signal is not None:
            placeholders(signal)
        return signal


class PrometheusSourceSettings(SourceSettings):
    """Observations from a Prometheus server."""

    implementation = "tocsin_monitor.sources.prometheus:PrometheusSource"
    name: Name = Field(description="Its name in metrics and logs.", examples=["prometheus"])
    url: Url = Field(default="http://127.0.0.1:9090", description="The server's address.", repr=False)
    bearer_token: Secret | None = Field(default=None, description="The bearer token to send.", examples=["change-me"])
    queries: tuple[PrometheusQuery, ...] = Field(min_length=1, description="The queries to run.")
    lookback: Seconds = Field(
        default=6 * 3600.0,
        description="How far back the first query reaches. This is history and sends no alerts.",
    )
    delay: Seconds = Field(default=10.0, description="How old a sample must be to count as final.")
    timeout: Seconds = Field(default=30.0, description="How long to wait for a reply.")


class FileSourceSettings(SourceSettings):
    """Observations from a growing file, or the growing files of a folder."""

    implementation = "tocsin_monitor.sources.files:FileSource"
    name: Name = Field(description="Its name in metrics and logs.", examples=["files"])
    path: Path = Field(description="A file or a folder.", examples=["/var/lib/sensors"])
    pattern: str = Field(default="*", description="Which files of a folder to read.")
    format: Literal["auto", "plain", "csv", "jsonl"] = Field(
        default="auto", description="Format of the lines: auto, plain, csv or jsonl."
    )
    time: str | None = Field(default=None, description="The time field.", examples=["time"])
    value: tuple[str, ...] = Field(default=(), description="The value fields.", examples=[["value"]])
    id: str | None = Field(
        default=None,
        description="The field with the signal's name; by default the file's name.",
        examples=["sensor"],
    )
    delimiter: str | None = Field(
        default=None, min_length=1, max_length=1, description="Field separator of a CSV line.", examples=[";"]
    )
    time_format: str | None = Field(default=None, description="The format of times.", examples=["%d.%m.%Y %H:%M:%S"])
    from_start: bool = Field(default=True, description="Whether to read existing lines.")
    poll: Seconds = Field(default=0.5, description="How often to check for new lines.")

    @field_validator("time_format", mode="after")
    @classmethod
    def _readable(cls, form: str | None) -> str | None:
        if form is not None:
            now = datetime.now()
            datetime.strptime(now.strftime(form), form)
        return form


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

    implementation = "tocsin_monitor.sources.opcua:OpcUaSource"
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


BUILT_IN = {
    "mqtt": MqttSourceSettings,
    "sparkplug": SparkplugSourceSettings,
    "prometheus": PrometheusSourceSettings,
    "files": FileSourceSettings,
    "opcua": OpcUaSourceSettings,
}

if TYPE_CHECKING:
    Sources = KindGroup[SourceSettings]
else:
    Sources = group_of(
        "Sources", "Where observations come from, besides HTTP.", "tocsin.sources", SourceSettings, BUILT_IN
    )
