"""Why an incident is over, in words for people who were told that it began."""

from tocsin.service.store import IncidentRow

_SUMMARIES = {
    "returned": "resolved, as it was before",
    "accepted": "stays otherwise, and that is taken for normal now",
    "silent": "sends no values any more",
    "labelled": "labelled a false alarm, and taken for normal now",
    "reset": "incident ended, since its detector was reset",
    "relearned": "incident ended, since its detector learned anew",
}
_SENTENCES = {
    "returned": "It is over: the signal is as it was before.",
    "accepted": "It ended, but the signal did not return: it stays otherwise, and that is taken for normal now.",
    "silent": "It ended, but the signal did not return: it sends no values any more.",
    "labelled": "It ended because somebody labelled it a false alarm: what the signal does is taken for normal now.",
    "reset": "It ended because the detector was reset. Nobody knows whether the signal is as it was before.",
    "relearned": "It ended because the detector learned anew. Nobody knows whether the signal is as it was before.",
}


def ending(incident: IncidentRow) -> str:
    """How it ended, in a few words."""
    if incident.kind == "silence" and incident.ended == "returned":
        return "resolved, sends again"
    return _SUMMARIES.get(incident.ended or "", "resolved")


def ending_sentence(incident: IncidentRow) -> str:
    """How it ended, in a sentence."""
    if incident.kind == "silence" and incident.ended == "returned":
        return "It is over: the signal sends again."
    return _SENTENCES.get(incident.ended or "", "It is over.")
