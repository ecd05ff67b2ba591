"""A report by mail: its summary as text, the page attached."""

from email.message import EmailMessage
from email.utils import make_msgid

from tocsin.service.config import Settings
from tocsin.service.config.sinks import MailSettings
from tocsin.service.report.facts import Report
from tocsin.service.report.page import summary_of, title_of
from tocsin.service.sinks.mail import MailSink


async def send_report(sink: MailSettings, settings: Settings, report: Report, page: str) -> None:
    """Send a report to the recipients of a mail sink; DeliveryError if nobody gets it."""
    letter = EmailMessage()
    letter["Subject"] = f"Tocsin: {title_of(report.period)}"
    letter["Message-ID"] = make_msgid(domain=sink.sender.rpartition("@")[2].strip("> "))
    letter.set_content("\n\n".join([*summary_of(report), "The whole report is attached; open it in a browser."]) + "\n")
    # A mail program runs no scripts, so the page with its charts is a file.
    letter.add_attachment(page, subtype="html", filename="tocsin-report.html")
    await MailSink(sink, settings).send(letter)
