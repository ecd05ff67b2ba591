"""Parts of the page that can be asked by themselves, without a browser, against slow and obvious answers."""

import itertools
import json
import subprocess
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import tocsin_monitor
from tests.service.helpers import program

SCRIPTS = Path(tocsin_monitor.__file__).parent / "page" / "js"

STREAM = ': hello\r\nid: r-1\nevent: incident\ndata: {"a":\ndata:  1}\n\nid:r-2\r\rdata:ü☃\r\n\r\nevent: x\n\ndata\n\n'


def ask(function: str, given: Any = None) -> Any:
    """What an asynchronous function of JavaScript makes of something; `load` imports a file of the page."""
    script = f"""
        globalThis.localStorage = globalThis.sessionStorage = {{ getItem: () => null }};
        const load = name => import({json.dumps(SCRIPTS.as_uri())} + '/' + name);
        console.log(JSON.stringify(await ({function})({json.dumps(given)})));
    """
    command = [program("node"), "--input-type=module", "--eval", script]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def events_in(stream: str) -> list[list[str]]:
    """The events of a whole stream, line by line as the standard says."""
    found, kind, lines = [], "", []
    for line in stream.replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if line == "":
            if lines:
                found.append([kind or "message", "\n".join(lines)])
            kind, lines = "", []
        elif field == "data":
            lines.append(value)
        elif field == "event":
            kind = value
    return found


def test_events_are_the_same_however_the_stream_is_cut():
    found = ask(
        """async stream => {
            const { EventStreamParser } = await load('sse.js');
            const found = new Set();
            for (let first = 0; first <= stream.length; first++) {
                for (let second = first; second <= stream.length; second++) {
                    const parser = new EventStreamParser();
                    const pieces = [stream.slice(0, first), stream.slice(first, second), stream.slice(second)];
                    const events = pieces.flatMap(piece => parser.feed(piece)).map(({ kind, data }) => [kind, data]);
                    found.add(JSON.stringify([events, parser.lastId]));
                }
            }
            return [...found];
        }""",
        STREAM,
    )
    assert [json.loads(one) for one in found] == [[events_in(STREAM), "r-2"]]
    assert len(events_in(STREAM)) == 3


def test_nothing_is_missed_or_doubled_when_a_stream_takes_the_place_of_another():
    """Number 2 is sent on the old stream before the new one subscribes, and read after it is there; 3 comes on both."""
    heard = ask(
        """async () => {
            const writers = [];
            globalThis.fetch = async () => {
                const pipe = new TransformStream();
                writers.push(pipe.writable.getWriter());
                return { ok: true, status: 200, body: pipe.readable };
            };
            const { Stream } = await load('stream.js');
            const heard = [];
            const stream = new Stream({
                connected: resumed => heard.push(`resumed ${resumed}`),
                disconnected: reason => heard.push(reason),
                event: (kind, data) => heard.push(data),
            });
            const wait = milliseconds => new Promise(done => setTimeout(done, milliseconds));
            const send = (at, number) =>
                void writers[at].write(new TextEncoder().encode(`id: r-${number}\\ndata: ${number}\\n\\n`));
            stream.start();
            await wait(20);
            send(0, 1);
            stream.watch(['pump']);
            await wait(20);
            send(0, 2);
            send(1, 3);
            send(0, 3);
            await wait(20);
            setTimeout(() => process.exit(0), 10);
            return heard;
        }"""
    )
    assert heard == ["resumed false", 1, "resumed true", 2, 3]


def test_patterns_fit_as_they_do_in_the_monitor():
    names = ["a", "ab", "a/b", "a*b", "a[b", "b]", "a.b", "A", "", "^", "a-b", "a\\b", "line 2/x"]
    patterns = ["*", "?", "a*", "a?b", "a[*]b", "a[[]b", "[ab]", "[!a]*", "[]b]*", "b]", "[", "a[", "a.b", "[a-c]b"]
    patterns += [
        "[z-a]",
        "^",
        "[!]]",
        "a[-]b",
        "a\\b",
        "line 2/*",
        "",
        "**",
        "*b",
        "*a*b*",
        "a**b",
        "*?*",
        "*2*?",
        "?*?",
    ]
    pairs = list(itertools.product(patterns, names))
    fits, escaped = ask(
        """async ([pairs, names]) => {
            const { escapePattern, fits } = await load('pattern.js');
            return [pairs.map(([pattern, name]) => fits(pattern, name)), names.map(escapePattern)];
        }""",
        [pairs, names],
    )
    assert dict(zip(pairs, fits, strict=True)) == {pair: fnmatchcase(pair[1], pair[0]) for pair in pairs}
    for pattern, name in zip(escaped, names, strict=True):
        assert [other for other in names if fnmatchcase(other, pattern)] == [name]


def test_words():
    said = ask(
        """async () => {
            const { budget, odds } = await load('rates.js');
            const { bytes, duration, number, pValue } = await load('format.js');
            return [
                [odds(0.01), odds(1 / 288), budget(0.01 / 60), budget(1 / 604800), budget(1 / 1e9)],
                [0, 12.3456, 1234567, 1e-7, -4e15, null].map(number),
                [0.5, 0.0123, 0.00006, null].map(pValue),
                [200, 5200, 61000, 5400000, 1e9].map(duration),
                [bytes(512), bytes(1536), bytes(2 ** 30)],
            ];
        }"""
    )
    assert said == [
        ["1 in 100", "1 in 288", "about 14 a day", "about 1 a week", "about 0.032 a year"],
        ["0", "12.35", "1.235M", "1.00e-7", "-4.00e15", "\N{EN DASH}"],
        ["0.5", "0.012", "6.0e-5", "\N{EN DASH}"],
        ["200 ms", "5.2 s", "1 min", "1 h 30 min", "11 d"],
        ["512 B", "1.5 KiB", "1 GiB"],
    ]


def test_how_rare_an_incident_is_in_words():
    minute = [[f"2026-01-01T00:{at:02}:00.000Z", 1, 0.5, False] for at in range(20)]
    cases = [(1, minute), (2, minute), (90, minute), (600, minute), (17280, minute), (60000, minute), (720000, minute)]
    cases += [(1234, []), (None, minute)]
    found = ask(
        """async cases => {
            const { rarity } = await load('incidents.js');
            return cases.map(([period, recent]) => rarity({ return_period: period, seen: 720000 }, { recent }));
        }""",
        cases,
    )
    times = ["60 seconds", "2 minutes", "90 minutes", "10 hours", "12 days", "42 days", "17 months"]
    assert found == [*(f"about once in {time}" for time in [*times, "1,234 observations"]), None]
    short = ask(
        """async recent => {
            const { rarity } = await load('incidents.js');
            return rarity({ return_period: 720000, seen: 2880 }, { recent });
        }""",
        minute,
    )
    assert short == "not seen in these 2 days"


def test_incidents_that_no_single_observation_shows_are_stretches():
    times = {"start": "2026-01-01T00:00:00Z", "end": "2026-01-01T00:01:00Z", "closed": None, "open": False}
    views = ["error", "horizons", "level", "movement", "shape", "shape-light", None]
    found = ask(
        """async cases => {
            const { spanOf } = await load('incidents.js');
            return cases.map(spanOf);
        }""",
        [{**times, "kind": "alarm", "view": view} for view in views],
    )
    assert [span["kind"] for span in found] == ["incident"] * 2 + ["stretch"] * 4 + ["incident"]
    assert {span["to"] - span["from"] for span in found} == {60}


def test_what_goes_on_lasts_up_to_now():
    times = {"start": "2026-01-01T00:00:00Z", "end": "2026-01-01T00:01:00Z", "view": "error"}
    cases = [{**times, "kind": kind, "open": True, "closed": None} for kind in ("alarm", "silence")]
    cases.append({**times, "kind": "silence", "open": False, "closed": "2026-01-01T00:05:00Z"})
    alarm, silence, over, now = ask(
        """async cases => {
            const { spanOf } = await load('incidents.js');
            return [...cases.map(spanOf).map(({ to }) => to), Date.now() / 1000];
        }""",
        cases,
    )
    assert abs(alarm - now) < 5
    assert abs(silence - now) < 5
    assert over - 5 * 60 == 1767225600


def test_no_pattern_takes_long():
    fits, milliseconds = ask(
        """async () => {
            const { fits } = await load('pattern.js');
            const began = performance.now();
            const fitting = [];
            for (let i = 0; i < 100; i++) fitting.push(fits('*a*a*a*a*a*a*a*a*b', 'a'.repeat(200)));
            return [fitting.some(Boolean), performance.now() - began];
        }"""
    )
    assert fits is False
    assert milliseconds < 2000  # one name took seconds when the pattern was made a regular expression
