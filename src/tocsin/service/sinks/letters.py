"""A notice as a mail: plain text, and HTML with the picture in it."""

from email.message import EmailMessage
from html import escape

from tocsin.service.sinks.notices import Notice

_PAGE = """<!doctype html>
<html lang="en"><body style="margin:0;padding:16px;font:14px/1.5 system-ui,sans-serif;color:#1a222d;background:#ffffff">
<div style="max-width:720px;border-left:5px solid {colour};padding:2px 0 2px 14px">
<h1 style="margin:0 0 6px;font-size:18px">{title}</h1>
<p style="margin:0 0 10px;white-space:pre-line">{text}</p>
{picture}<table style="border-collapse:collapse">{facts}</table>
{link}</div>
</body></html>
"""
_FACT = (
    '<tr><th style="padding:2px 14px 2px 0;text-align:left;font-weight:500;color:#525d6b">{}</th>'
    '<td style="padding:2px 0">{}</td></tr>'
)
_PICTURE = (
    '<p style="margin:0 0 10px"><img src="cid:{}" alt="Values, forecast and expected range around the incident"'
    ' style="max-width:100%"></p>\n'
)


def write_letter(notice: Notice, picture: bytes | None) -> EmailMessage:
    """The mail, without sender and recipients."""
    letter = EmailMessage()
    letter["Subject"] = notice.title
    if notice.critical:
        letter["Importance"] = "high"
    lines = [notice.text, "", *(f"{name}: {value}" for name, value in notice.facts.items())]
    letter.set_content("\n".join([*lines, "", notice.link] if notice.link else lines) + "\n")
    name = f"incident-{notice.fields['id']}.png"
    letter.add_alternative(_html(notice, None if picture is None else name), subtype="html")
    if picture is not None:
        page = letter.get_payload()[1]  # type: ignore[index]
        page.add_related(  # type: ignore[union-attr]
            picture, maintype="image", subtype="png", cid=f"<{name}>", filename=name, disposition="inline"
        )
    return letter


def _html(notice: Notice, picture: str | None) -> str:
    link = f'<p><a href="{escape(notice.link)}">Open the incident</a></p>\n' if notice.link else ""
    return _PAGE.format(
        colour=notice.colour,
        title=escape(notice.title),
        text=escape(notice.text),
        picture="" if picture is None else _PICTURE.format(escape(picture)),
        facts="".join(_FACT.format(escape(name), escape(value)) for name, value in notice.facts.items()),
        link=link,
    )
