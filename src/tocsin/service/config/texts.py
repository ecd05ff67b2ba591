"""The settings of sinks that write to people."""

from pydantic import Field

from tocsin.service.config.kinds import SinkSettings
from tocsin.service.config.section import SecretUrl


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
