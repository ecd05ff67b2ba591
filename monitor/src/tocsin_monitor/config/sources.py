"""The settings of sources: where observations come from, besides HTTP."""

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import Field, field_validator

from tocsin_monitor.config.kinds import KindGroup, SourceSettings, group_of
from tocsin_monitor.config.section import (
    LabelPattern,
    MqttBroker,
    Name,
    Seconds,
    Secret,
    Section,
    Topic,
    TopicOrNone,
    Url,
    check_placeholders,
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


class PrometheusQuery(Section):
    """One query and its signals."""

    query: str = Field(
        description="PromQL; each series of its result is a signal.", min_length=1, examples=["node_load1"]
    )
    signal: LabelPattern | None = Field(
        default=None,
        description="The signal's name, such as 'load/{instance}'; by default all labels.",
        examples=["load/{instance}"],
    )
    step: Seconds = Field(default=60.0, description="The time between observations.")


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


BUILT_IN = {
    "mqtt": MqttSourceSettings,
    "prometheus": PrometheusSourceSettings,
    "files": FileSourceSettings,
}

if TYPE_CHECKING:
    Sources = KindGroup[SourceSettings]
else:
    Sources = group_of(
        "Sources", "Where observations come from, besides HTTP.", "tocsin.sources", SourceSettings, BUILT_IN
    )
