import logging

from tocsin.service.logs import RepeatLimit


def test_one_place_of_the_program_cannot_flood_the_log() -> None:
    now = [0.0]
    spared = RepeatLimit(most=3, clock=lambda: now[0])

    def said(line: int, text: str) -> str | None:
        record = logging.LogRecord("tocsin", logging.WARNING, "here.py", line, "sink %s", (text,), None)
        return record.getMessage() if spared.filter(record) else None

    assert [said(1, str(number)) for number in range(5)] == ["sink 0", "sink 1", "sink 2", None, None]
    assert said(2, "other") == "sink other"
    now[0] = 61.0
    assert said(1, "5") == "sink 5 (and 2 more like it left out)"
    assert said(1, "6") == "sink 6"
