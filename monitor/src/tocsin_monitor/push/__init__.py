"""What others push over HTTP in their own formats: bytes in, observations out."""

from tocsin_monitor.push.intake import Intake, MalformedError, Naming, Receiver, Receivers, TooManyError

__all__ = ["Intake", "MalformedError", "Naming", "Receiver", "Receivers", "TooManyError"]
