"""The settings of sources: where observations come from, apart from HTTP."""

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import Field, field_validator

from tocsin.service.config.kinds import KindGroup, SourceSettings, group_of
from tocsin.service.config.section import (
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
    """How a broker is reached."""

    host: str = Field(default="127.0.0.1", min_length=1, description="The broker.")
    port: int = Field(default=1883, ge=1, le=65535, description="Its port.")
    username: str | None = Field(default=None, description="Who we are there.", examples=["tocsin"])
    password: Secret | None = Field(default=None, description="The password.", examples=["change-me"])
    tls: bool = Field(default=False, description="Whether to use TLS.")
    ca_file: Path | None = Field(
        default=None, description="Certificates to trust, where not the system's.", examples=["/etc/tocsin/ca.crt"]
    )
    client_id: str | None = Field(
        default=None,
        description="The client's name; the broker keeps what comes while we are away.",
        examples=["tocsin-plant"],
    )


class MqttSourceSettings(MqttBroker, SourceSettings):
    """Observations from an MQTT broker."""

    implementation = "tocsin.service.sources.mqtt:MqttSource"
    name: Name = Field(description="What it is called in metrics and logs.", examples=["plant"])
    topics: tuple[str, ...] = Field(
        description="Topic patterns, with + and #.", min_length=1, examples=[["plant/+/vibration"]]
    )
    signal: str = Field(default="{topic}", description="The signal's name: {topic}, or its levels {0}, {1}, ...")
    value: tuple[str, ...] = Field(
        default=(),
        description="Where the numbers are in a JSON message; none for a plain number.",
        examples=[["value"]],
    )
    time: str | None = Field(
        default=None,
        description="Where the time is in a JSON message; none for that of its arrival.",
        examples=["time"],
    )
    status_topic: Topic = Field(default="tocsin/status", description="Retained: 'online', and 'offline' as last will.")
    results_topic: TopicOrNone = Field(
        default="tocsin/results", description="Verdicts are published under it; empty for not."
    )

    @field_validator("signal", mode="after")
    @classmethod
    def _from_topic(cls, signal: str) -> str:
        return check_placeholders(signal, "there are {topic} and its levels {0}, {1}, ...", "topic", numbers=True)


class PrometheusQuery(Section):
    """One query and the signals that it gives."""

    query: str = Field(
        description="PromQL; each series of its result is a signal.", min_length=1, examples=["node_load1"]
    )
    signal: str | None = Field(
        default=None,
        description="The name, such as 'load/{instance}'; all labels if not given.",
        examples=["load/{instance}"],
    )
    step: Seconds = Field(default=60.0, description="Time between observations.")

    @field_validator("signal", mode="after")
    @classmethod
    def _from_labels(cls, signal: str | None) -> str | None:
        if signal is not None:
            placeholders(signal)
        return signal


class PrometheusSourceSettings(SourceSettings):
    """Observations from a Prometheus server."""

    implementation = "tocsin.service.sources.prometheus:PrometheusSource"
    name: Name = Field(description="What it is called in metrics and logs.", examples=["prometheus"])
    url: Url = Field(default="http://127.0.0.1:9090", description="The server.", repr=False)
    bearer_token: Secret | None = Field(default=None, description="A token to send.", examples=["change-me"])
    queries: tuple[PrometheusQuery, ...] = Field(min_length=1, description="What to ask.")
    lookback: Seconds = Field(
        default=6 * 3600.0,
        description="How far back the first question reaches: that is history, and nobody is told of it.",
    )
    delay: Seconds = Field(default=10.0, description="How old a sample must be to be taken as final.")
    timeout: Seconds = Field(default=30.0, description="How long to wait for an answer.")


class FileSourceSettings(SourceSettings):
    """Observations from a file, or the files of a folder, that grow."""

    implementation = "tocsin.service.sources.files:FileSource"
    name: Name = Field(description="What it is called in metrics and logs.", examples=["files"])
    path: Path = Field(description="A file, or a folder.", examples=["/var/lib/sensors"])
    pattern: str = Field(default="*", description="Which files of a folder.")
    format: Literal["auto", "plain", "csv", "jsonl"] = Field(
        default="auto", description="How lines are written: auto, plain, csv or jsonl."
    )
    time: str | None = Field(default=None, description="The field of times.", examples=["time"])
    value: tuple[str, ...] = Field(default=(), description="The fields of values.", examples=[["value"]])
    id: str | None = Field(
        default=None,
        description="The field that says which signal it is; the file's name if none.",
        examples=["sensor"],
    )
    delimiter: str | None = Field(
        default=None, min_length=1, max_length=1, description="Between fields of a CSV line.", examples=[";"]
    )
    time_format: str | None = Field(default=None, description="How times are written.", examples=["%d.%m.%Y %H:%M:%S"])
    from_start: bool = Field(default=True, description="Whether to read what is there already.")
    poll: Seconds = Field(default=0.5, description="How often to look.")

    @field_validator("time_format", mode="after")
    @classmethod
    def _readable(cls, form: str | None) -> str | None:
        if form is not None:
            now = datetime.now()
            datetime.strptime(now.strftime(form), form)
        return form


BUILT_IN = {"mqtt": MqttSourceSettings, "prometheus": PrometheusSourceSettings, "files": FileSourceSettings}

if TYPE_CHECKING:
    Sources = KindGroup[SourceSettings]
else:
    Sources = group_of(
        "Sources", "Where observations come from, apart from HTTP.", "tocsin.sources", SourceSettings, BUILT_IN
    )
