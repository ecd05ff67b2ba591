"""Why an incident ended, in words for people who were alerted to it."""

from tocsin.service.store import IncidentRow

_SUMMARIES = {
    "returned": "resolved, back to normal",
    "accepted": "changed for good, and accepted as the new normal",
    "silent": "sends no more values",
    "labelled": "labelled a false alarm, and accepted as normal",
    "reset": "incident ended because its detector was reset",
    "relearned": "incident ended because its detector was retrained",
    "removed": "incident ended because the signal was removed",
}
_SENTENCES = {
    "returned": "It is over: the signal is back to normal.",
    "accepted": "It ended, but the signal did not return: its new behaviour is accepted as normal.",
    "silent": "It ended, but the signal did not return: it sends no more values.",
    "labelled": "It ended because a user labelled it a false alarm: the signal's behaviour is accepted as normal.",
    "reset": "It ended because the detector was reset. Whether the signal is back to normal is unknown.",
    "relearned": "It ended because the detector was retrained. Whether the signal is back to normal is unknown.",
    "removed": "It ended because a user removed the signal. It is no longer monitored.",
}


def ending(incident: IncidentRow) -> str:
    """How it ended, in a few words."""
    if incident.kind == "silence" and incident.ended == "returned":
        return "resolved, sending again"
    return _SUMMARIES.get(incident.ended or "", "resolved")


def ending_sentence(incident: IncidentRow) -> str:
    """How it ended, in a sentence."""
    if incident.kind == "silence" and incident.ended == "returned":
        return "It is over: the signal is sending again."
    return _SENTENCES.get(incident.ended or "", "It is over.")
