"""A monitor that only pretends: it serves the page and canned answers, and remembers what it was asked."""

import json
import queue
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import tocsin_monitor
from tests.service.page import fake_data as data
from tocsin.reports import chart_library
from tocsin_monitor.tokens import Role

PAGE = Path(tocsin_monitor.__file__).parent / "page"
CHARTS = {f"vendor/uplot/{name}": Path(str(file)) for name, file in chart_library().items()}
TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
SECONDS = 30.0  # to wait for the page: a busy machine is no failure
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


class FakeMonitor:
    """The state behind the server; tests change it and look at `calls`."""

    def __init__(self, server: "PageServer") -> None:
        self.signals: dict[str, dict[str, Any]] = {}
        self.incidents: dict[int, dict[str, Any]] = {}
        self.events: dict[int, dict[str, Any]] = {}
        self.causes: dict[str, Any] = {"text": "cannot tell", "signals": []}
        self.windows: list[dict[str, Any]] = []
        self.deeds: list[dict[str, Any]] = []
        self.status: dict[str, Any] | None = None  # what is said of the monitor itself, in place of good health
        self.now = data.now()  # of the newest observation: what is told of it must not change with the clock
        self.refusal: str | None = None  # what is said of any change
        self.detectable: list[dict[str, Any]] = []  # the same of faults that are injected
        self.trials: list[dict[str, Any]] = []  # what is said of a trial, one after the other
        self.templates = [data.template("line */motor *", detector={"alarm_rate": "1/day"})]
        self.affected: dict[str, list[str]] = {"signals": [], "own": []}  # by a changed template
        self.details: dict[str, Any] = {}  # what is different in the details of signals
        self.failures: dict[str, str] = {}  # why something for many fails, by signal or sink
        self.role, self.token = "admin", None
        self.reachable = True
        self.calls: list[tuple[str, str, Any]] = []
        self.histories: list[dict[str, str]] = []  # what was asked for of histories
        self.streams: list[queue.Queue[tuple[str, str, Any] | None]] = []
        self.asked: list[tuple[str | None, list[str]]] = []  # Last-Event-ID and signals of each stream
        self.sent: list[tuple[str, str, Any]] = []
        self.url = server.url
        server.fake = self

    def wait_for_call(self, *call: Any) -> None:
        """Wait until the page's newest call begins so (method, path, body): dialogs close before their call is made."""
        ends = time.monotonic() + SECONDS
        while not self.calls or self.calls[-1][: len(call)] != call:
            assert time.monotonic() < ends, f"the page's newest call is not {call}: {self.calls}"
            time.sleep(0.01)

    def push(self, kind: str, payload: Any) -> None:
        """Send an event to all streams."""
        event = (f"run-{len(self.sent) + 1}", kind, payload)
        self.sent.append(event)
        for stream in list(self.streams):
            stream.put(event)

    def cut(self) -> None:
        """End all streams, and let no request through until `reachable` is true again."""
        self.reachable = False
        for stream in list(self.streams):
            stream.put(None)

    def change_incident(self, number: int, **fields: Any) -> dict[str, Any]:
        self.incidents[number] |= fields
        return self.incidents[number]


def fill(monitor: FakeMonitor) -> None:
    """A small plant: an incident, a silent signal, one that learns, one with features, a hostile name."""
    now = monitor.now
    features = ("pressure", "flow")
    for made in (
        data.signal("plant/pump 3/pressure", now, 1, incident=2),
        data.signal("plant/pump 4/vibration", now, 2, features, incident=3),
        data.signal("hall/door", now - 400 * data.STEP, 3, silent=True, incident=4),
        data.signal("lab/new sensor", now, 4, warm=False, observations=120, warm_up=512, p=None, severity=None),
        data.signal(data.HOSTILE, now, 5),
        *(data.signal(f"line {number % 7}/motor {number}/load", now, number) for number in range(6, 40)),
    ):
        monitor.signals[made["name"]] = made
    start = now - 29 * data.STEP
    for found in (
        data.incident(
            1, "plant/pump 3/pressure", now - 900 * data.STEP, open=False, label="fault", note="Seal worn.",
            closed=data.text(now - 800 * data.STEP), ended="returned",
        ),
        data.incident(2, "plant/pump 3/pressure", start, severity=4.2, p=0.00006),
        data.incident(
            3, "plant/pump 4/vibration", start, features={"pressure": 3.1, "flow": 18.4}, view="movement",
            explanation="flow: has not moved for 32 observations", feature_p={"flow": 0.0004},
        ),
        data.incident(
            4, "hall/door", now - 400 * data.STEP, kind="silence", alarms=0, duration=0, p=None, severity=None,
            return_period=None, seen=0, began_earliest=None,
            began_latest=None, view=None, explanation=None, direction=None, deviation=None, features={},
        ),
    ):  # fmt: skip
        monitor.incidents[found["id"]] = found
    monitor.windows = [
        {
            **data.WINDOW,
            "id": 1,
            "pattern": "line 2/*",
            "start": data.text(now),
            "end": data.text(now + 360 * data.STEP),
            "reason": "new bearings",
            "created_by": "ana",
        }
    ]


class PageServer(ThreadingHTTPServer):
    """Answers for one fake monitor after the other at the same address, so that a browser keeps the page's files."""

    daemon_threads = True
    fake: FakeMonitor

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.url = f"http://127.0.0.1:{self.server_port}"
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    def stop(self) -> None:
        self.shutdown()
        self.server_close()

    def handle_error(self, request: object, address: object) -> None:
        """A page that is left in the middle of an answer is no error."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, address)


class _Handler(BaseHTTPRequestHandler):
    server: PageServer
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments: object) -> None:
        """Nothing: tests say what went wrong."""

    def do_GET(self) -> None:
        self._answer()

    do_POST = do_DELETE = do_PUT = do_GET

    def _answer(self) -> None:
        self.fake = self.server.fake
        parts = urlsplit(self.path)
        if not parts.path.startswith("/api/v1"):
            self._file("index.html" if parts.path == "/" else parts.path.removeprefix("/static/"))
            return
        length = int(self.headers.get("Content-Length", 0))
        body = json.loads(self.rfile.read(length)) if length else None
        if not self.fake.reachable:
            self.close_connection = True  # as if nobody were there
            return
        if self.fake.token is not None and self.headers.get("Authorization") != f"Bearer {self.fake.token}":
            self._send(401, {"error": {"message": "a token is needed"}})
            return
        path, query = parts.path.removeprefix("/api/v1"), parse_qs(parts.query)
        if self.command != "GET":
            self.fake.calls.append((self.command, unquote(path), body))
        if path == "/stream":
            self._stream(query)
            return
        if self.command != "GET" and self.fake.refusal:
            self._send(422, {"error": {"message": self.fake.refusal}})
            return
        found = self._look_up(path, query, body)
        if found is None:
            self._send(404, {"error": {"message": f"there is no {unquote(path)}"}})
        else:
            self._send(200, found)

    def _look_up(self, path: str, query: dict[str, list[str]], body: Any) -> Any:
        fake, names = self.fake, unquote(path).removeprefix("/signals/")
        match path.split("/")[1:]:
            case ["me"]:
                return {"name": "ana", "role": fake.role, "may": sorted(Role(fake.role).includes), "match": []}
            case ["access-log"]:
                rest = [one for one in fake.deeds if one["id"] < int(query.get("before", [10**9])[0])]
                return {"access_log": rest[: int(query["limit"][0])]}
            case ["sinks", "test"]:
                chosen = [
                    one for one in self._look_up("/status", {}, None)["sinks"] if body["name"] in (None, one["name"])
                ]
                told = [(one["name"], fake.failures.get(one["name"])) for one in chosen]
                return {"sinks": [{"name": name, "delivered": not error, "error": error} for name, error in told]}
            case ["status"]:
                return fake.status or data.status(len(fake.signals), data.now())
            case ["templates"] if body:
                return self._store(body)
            case ["templates"]:
                return {"templates": fake.templates}
            case ["templates", _, "-", "detectable"]:
                return fake.detectable.pop(0) if fake.detectable else data.template_detectable("none")
            case ["templates", match]:
                of_file = [one["file"] for one in fake.templates if one["match"] == unquote(match) and one["file"]]
                others = [one for one in fake.templates if one["match"] != unquote(match)]
                fake.templates = [*(data.template(**one) for one in of_file), *others]
                return fake.affected
            case ["trials", *_]:
                return fake.trials.pop(0) if fake.trials else {}
            case ["signals"]:
                return {"signals": list(fake.signals.values())}
            case ["overview"]:
                return data.overview(fake.signals.values())
            case ["recent"]:
                return {"recent": {name: fake.signals[name]["recent"] for name in query["signals"]}}
            case ["bulk", kind]:
                return self._bulk(kind, body)
            case ["signals", _] if body:
                return fake.signals[names]
            case ["signals", _]:
                return fake.signals.get(names)
            case ["signals", _, "-", part]:
                known = fake.signals.get(names.removesuffix(f"/-/{part}"))
                return known and self._part(part, known, query, body)
            case ["incidents"]:
                return {"incidents": self._incidents(query)}
            case ["incidents", "count"]:
                return {"count": len(self._incidents(query))}
            case ["incidents", number]:
                return fake.incidents.get(int(number))
            case ["incidents", number, action]:
                return fake.change_incident(int(number), **self._change(action, body))
            case ["events"]:
                return {"events": list(fake.events.values())}
            case ["events", number]:
                return fake.events.get(int(number))
            case ["events", number, "causes"]:
                return fake.causes
            case ["events", number, action]:
                fake.events[int(number)] |= self._change(action, body)
                return fake.events[int(number)]
            case ["maintenance", "preview"]:
                times = (data.now() + day * 86400 for day in range(1, 4))
                coming = [{"start": data.text(at), "end": data.text(at + 7200)} for at in times]
                return {**data.WINDOW, **body, "occurrences": coming}
            case ["maintenance"] if body:
                fake.windows.append({**data.WINDOW, "id": len(fake.windows) + 1, **body, "created_by": "ana"})
                return fake.windows[-1]
            case ["maintenance"]:
                return {"maintenance": fake.windows}
            case ["maintenance", number]:
                fake.windows = [window for window in fake.windows if window["id"] != int(number)]
                return {}
        return None

    def _part(self, part: str, known: dict[str, Any], query: dict[str, list[str]], body: Any) -> Any:
        if part == "details":
            return data.details(len(known["features"])) | self.fake.details
        if part == "history":
            self.fake.histories.append({name: one[0] for name, one in query.items()})
            return data.between(
                data.history(2000, len(known["features"]), 7, self.fake.now),
                *(query.get(name, [None])[0] for name in ("from", "to")),
            )
        if part == "detectable":
            return self.fake.detectable.pop(0) if self.fake.detectable else data.detectable("none")
        if part == "trial":
            return self.fake.trials.pop(0) if self.fake.trials else {}
        if part == "reference":
            told = {**body, "observations": 61, "created": data.text(data.now()), "created_by": "ana"} if body else None
            known["reference"] = told
            return told or {}
        return {}

    def _store(self, body: Any) -> Any:
        """A template in place of the one with the same pattern."""
        fake = self.fake
        before = [one for one in fake.templates if one["match"] == body["match"]]
        plain = [{name: one[name] for name in data.TEMPLATE} for one in before if not one["stored"]]
        kept = [one["file"] for one in before if one["file"]]
        stored = data.template(**body, stored=True, file=next(iter(plain + kept), None))
        stored |= {"changed": data.text(data.now()), "changed_by": "ana"}
        fake.templates = [stored, *(one for one in fake.templates if one["match"] != body["match"])]
        return fake.affected

    def _bulk(self, kind: str, body: Any) -> Any:
        items = [{"signal": name, "incident": None, "error": None} for name in body["signals"]]
        if kind == "incidents":
            items = [
                {"signal": one["signal"], "incident": one["id"], "error": None}
                for one in self.fake.incidents.values()
                if one["open"] and one["signal"] in body["signals"]
            ]
            for one in items:
                self.fake.change_incident(one["incident"], acknowledged=data.text(data.now()))
        for one in items:
            one["error"] = self.fake.failures.get(one["signal"])
        failed = sum(one["error"] is not None for one in items)
        return {"done": len(items) - failed, "failed": failed, "items": items}

    def _incidents(self, query: dict[str, list[str]]) -> list[Any]:
        found = sorted(self.fake.incidents.values(), key=lambda one: -one["id"])
        if "open" in query:
            found = [one for one in found if one["open"] == (query["open"] == ["true"])]
        if "signal" in query:
            found = [one for one in found if one["signal"] == query["signal"][0]]
        if "suppressed" in query:
            found = [one for one in found if one["suppressed"]]
        if "withheld" in query:
            found = [one for one in found if one["withheld"] and one["end"] >= query["since"][0]]
        if query.get("order") == ["rarest"]:
            found.sort(key=lambda one: -one["return_period"])
        return found

    def _change(self, action: str, body: Any) -> dict[str, Any]:
        on, now = self.command == "POST", data.now()
        if action == "acknowledge":
            return {"acknowledged": data.text(now) if on else None, "acknowledged_by": "ana" if on else None}
        if action == "snooze":
            return {"snoozed_until": data.text(now + body["seconds"] * data.STEP / 10) if on else None}
        return {"label": body["label"], "note": body["note"], "excluded": body["exclude"], "label_of": None}

    def _stream(self, query: dict[str, list[str]]) -> None:
        last = self.headers.get("Last-Event-ID")
        self.fake.asked.append((last, query.get("signals", [])))
        stream: queue.Queue[tuple[str, str, Any] | None] = queue.Queue()
        self.fake.streams.append(stream)
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        for event in self.fake.sent[int(last.removeprefix("run-")) :] if last else []:
            stream.put(event)
        self.wfile.write(f"id: run-{len(self.fake.sent)}\n\n".encode())
        try:
            while event := stream.get():
                identity, kind, payload = event
                self.wfile.write(f"id: {identity}\nevent: {kind}\ndata: {json.dumps(payload)}\n\n".encode())
        except OSError:  # the page is gone
            pass
        self.fake.streams.remove(stream)
        self.close_connection = True

    def _file(self, name: str) -> None:
        file = CHARTS.get(name, PAGE / unquote(name))
        if not file.is_file():
            self._send(404, {"error": {"message": "no such file"}})
            return
        self._write(200, TYPES[file.suffix], file.read_bytes(), caching="max-age=3600")

    def _send(self, code: int, body: Any) -> None:
        self._write(code, "application/json", json.dumps(body).encode())

    def _write(self, code: int, kind: str, content: bytes, caching: str = "no-store") -> None:
        self.send_response(code)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Content-Security-Policy", POLICY)
        self.send_header("Cache-Control", caching)
        self.end_headers()
        self.wfile.write(content)
