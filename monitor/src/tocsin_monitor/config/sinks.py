"""The settings of sinks: where incidents go."""

import re
from email.utils import parseaddr
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, field_validator, model_validator

from tocsin_monitor.config.kinds import KindGroup, SinkSettings, group_of
from tocsin_monitor.config.section import MqttBroker, Name, Seconds, Secret, SecretUrl, Topic, Url, check_placeholders


class TextSettings(SinkSettings):
    """A sink that sends a title and a text."""

    title: str = Field(
        default="{summary}", description="The title; names in braces are fields of the message (docs/notifications.md)."
    )
    text: str = Field(default="{description}", description="The text, with the same fields.")


class ChatSettings(TextSettings):
    """A chat's incoming webhook."""

    url: SecretUrl = Field(
        description="The address of the incoming webhook.", repr=False, examples=["https://chat.example.com/hooks/key"]
    )


class PictureSettings(TextSettings):
    """A sink that can show a picture."""

    picture: bool = Field(default=True, description="Whether to attach a picture of the incident; needs tocsin[plot].")


def _mailbox(text: str) -> str:
    address = parseaddr(text)[1]
    name, _, domain = address.rpartition("@")
    if not (name and domain and text.isprintable()) or " " in address:
        raise ValueError('must be an address such as "plant@example.com" or "Plant <plant@example.com>"')
    return text


def _ntfy_topic(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", text):
        raise ValueError("must be 1 to 64 letters, digits, _ and -")
    return text


NtfyTopic = Annotated[str, AfterValidator(_ntfy_topic)]
Mailbox = Annotated[str, AfterValidator(_mailbox)]
Priority = Annotated[int, Field(ge=1, le=5)]


def _called(example: str) -> Any:
    # Names must differ, in examples too.
    return Field(description="Its name in metrics and logs.", examples=[example])


class AlertmanagerSettings(SinkSettings):
    """Prometheus' Alertmanager."""

    implementation = "tocsin_monitor.sinks.alertmanager:AlertmanagerSink"
    name: Name = _called("alertmanager")
    url: Url = Field(default="http://127.0.0.1:9093", description="The Alertmanager's address.", repr=False)
    bearer_token: Secret | None = Field(default=None, description="The bearer token to send.", examples=["change-me"])
    labels: dict[str, str] = Field(
        default_factory=dict, description="Additional labels for every alert.", examples=[{"team": "plant"}]
    )
    refresh: Seconds = Field(default=60.0, description="How often to repeat an open alert.")


class WebhookSettings(SinkSettings):
    """Any address that accepts Alertmanager's webhook payload (version 4)."""

    implementation = "tocsin_monitor.sinks.alertmanager:WebhookSink"
    name: Name = _called("webhook")
    url: SecretUrl = Field(description="The address.", repr=False, examples=["https://hooks.example.com/tocsin"])
    bearer_token: Secret | None = Field(default=None, description="The bearer token to send.", examples=["change-me"])
    headers: dict[str, Secret] = Field(
        default_factory=dict, description="Additional headers.", examples=[{"X-Key": "change-me"}]
    )


class MqttSinkSettings(SinkSettings, MqttBroker):
    """An MQTT broker."""

    implementation = "tocsin_monitor.sinks.mqtt:MqttSink"
    name: Name = _called("broker")
    topic: Topic = Field(
        default="tocsin/incidents/{signal}", description="Where incidents are published, retained while open."
    )

    @field_validator("topic", mode="after")
    @classmethod
    def _of_signal(cls, topic: str) -> str:
        return check_placeholders(topic, "use {signal}", "signal")


class MailSettings(PictureSettings):
    """Mail, over SMTP."""

    implementation = "tocsin_monitor.sinks.mail:MailSink"
    name: Name = _called("mail")
    host: str = Field(description="The mail server.", examples=["mail.example.com"])
    port: int = Field(default=0, ge=0, le=65535, description="Its port; 0 for the usual one: 587, with tls 465, or 25.")
    security: Literal["starttls", "tls", "none"] = Field(
        default="starttls", description="starttls, tls (from the start) or none."
    )
    ca_file: Path | None = Field(
        default=None, description="Trusted certificates, if not the system's.", examples=["/etc/ssl/own-ca.pem"]
    )
    username: str | None = Field(default=None, description="The user name.", examples=["tocsin"])
    password: Secret | None = Field(default=None, description="The password.", examples=["change-me"])
    sender: Mailbox = Field(description="The sender.", examples=["Tocsin <tocsin@example.com>"])
    recipients: tuple[Mailbox, ...] = Field(
        min_length=1, description="The recipients.", examples=[["plant@example.com"]]
    )

    @model_validator(mode="after")
    def _not_in_the_clear(self) -> Self:
        if (self.username is None) != (self.password is None):
            raise ValueError("username and password go together: set both or neither")
        if self.password is not None and self.security == "none":
            raise ValueError('a password needs security = "starttls" or "tls": it would be sent in the clear')
        return self


class SlackSettings(ChatSettings):
    """Slack, by an incoming webhook."""

    implementation = "tocsin_monitor.sinks.chat:SlackSink"
    name: Name = _called("slack")


class MattermostSettings(ChatSettings):
    """Mattermost, by an incoming webhook."""

    implementation = "tocsin_monitor.sinks.chat:MattermostSink"
    name: Name = _called("mattermost")
    channel: str | None = Field(
        default=None, description="Another channel than the webhook's own, if that is allowed.", examples=["plant"]
    )
    username: str | None = Field(default=None, description="The name to post under.", examples=["Tocsin"])


class TeamsSettings(ChatSettings):
    """Microsoft Teams, by the webhook of a workflow."""

    implementation = "tocsin_monitor.sinks.chat:TeamsSink"
    name: Name = _called("teams")


class PagerDutySettings(TextSettings):
    """PagerDuty, by its Events API version 2."""

    implementation = "tocsin_monitor.sinks.chat:PagerDutySink"
    name: Name = _called("pagerduty")
    url: Url = Field(default="https://events.pagerduty.com", description="The address of the Events API.", repr=False)
    routing_key: Secret = Field(description="The integration key of the service.", examples=["change-me"])
    refresh: Seconds = Field(default=10.0, description="How often to look for acknowledgements to pass on.")


class NtfySettings(PictureSettings):
    """ntfy, push messages to phones."""

    implementation = "tocsin_monitor.sinks.chat:NtfySink"
    name: Name = _called("ntfy")
    url: Url = Field(default="https://ntfy.sh", description="The server.", repr=False)
    topic: NtfyTopic = Field(description="The topic: 1 to 64 letters, digits, _ and -.", examples=["plant-4711"])
    token: Secret | None = Field(default=None, description="The access token.", examples=["change-me"])
    priority: Priority = Field(default=4, description="The priority of an incident, from 1 to 5.")
    priority_critical: Priority = Field(default=5, description="The priority of a critical incident.")
    priority_ended: Priority = Field(default=2, description="The priority of its end.")
    tags: tuple[str, ...] = Field(default=(), description="Additional tags.", examples=[["plant"]])


BUILT_IN = {
    "alertmanager": AlertmanagerSettings,
    "webhook": WebhookSettings,
    "mqtt": MqttSinkSettings,
    "mail": MailSettings,
    "slack": SlackSettings,
    "mattermost": MattermostSettings,
    "teams": TeamsSettings,
    "pagerduty": PagerDutySettings,
    "ntfy": NtfySettings,
}

if TYPE_CHECKING:
    Sinks = KindGroup[SinkSettings]
else:
    Sinks = group_of("Sinks", "Where incidents go.", "tocsin.sinks", SinkSettings, BUILT_IN)
