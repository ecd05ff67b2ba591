"""The store: whether it can be reached, what it is, and what its tokens and times say."""

import time
from collections.abc import Iterator, Sequence

from tocsin_monitor.as_json import time_text
from tocsin_monitor.config import Settings
from tocsin_monitor.doctor.finding import Finding, failed, ok, warning
from tocsin_monitor.doctor.machine import missing_forecasters
from tocsin_monitor.engine.signal_templates import in_force
from tocsin_monitor.errors import StoreError
from tocsin_monitor.store import TokenRow
from tocsin_monitor.store.facts import StoreFacts, StuckMessages, file_of, look_at

# The oldest PostgreSQL that its makers still maintain, by its first number.
OLDEST_POSTGRESQL = 13
# In seconds.
AHEAD = 5.0
SOON = 30 * 86400
_NEW_TOKEN = "tocsin token create NAME --role ROLE"  # noqa: S105 no token, but how to make one


def check_store(settings: Settings) -> Iterator[Finding]:
    """All that can be said of the store."""
    file = file_of(settings.store_url)
    if file is not None and not file.exists():
        yield warning(
            "store",
            f"there is none in {file.parent} yet",
            "the first start makes it; if there should be one, check --data, storage.folder and storage.url",
        )
        return
    try:
        facts = look_at(settings.store_url)
    except StoreError as error:
        yield failed("store", str(error), "check storage.url, the server, its network and its rights")
        return
    yield _database(facts)
    yield _tables(facts)
    if file is None:
        yield _clock(facts)
    if facts.current:
        yield _newest(facts, settings)
        yield _tokens(facts.tokens, private=settings.server.private)
        if facts.templates:
            yield _templates(facts, settings)
        for _, sink in settings.sinks.each():
            if sink.name in facts.stuck:
                yield _stuck(sink.name, facts.stuck[sink.name])


def _database(facts: StoreFacts) -> Finding:
    name, _, version = facts.database.partition(" ")
    said = f"{facts.database}, {facts.encoding}" + (f", in use by {facts.owner}" if facts.owner else "")
    if name == "PostgreSQL" and facts.encoding != "UTF8":
        return failed("store", said, "create one with CREATE DATABASE name ENCODING 'UTF8' TEMPLATE template0")
    if name == "PostgreSQL" and int(version.partition(".")[0]) < OLDEST_POSTGRESQL:
        return warning("store", said, f"update it: versions before {OLDEST_POSTGRESQL} are no longer maintained")
    return ok("store", said)


def _tables(facts: StoreFacts) -> Finding:
    said = f"version {facts.tables}, and this program works with version {facts.newest_tables}"
    if facts.tables > facts.newest_tables:
        return failed("tables", said, "use the newer tocsin that wrote them, or restore a backup from before")
    if facts.tables == 0:
        return warning("tables", "there are none yet", "the first start makes them")
    if not facts.current:
        return warning("tables", said, "back up (`tocsin backup` of the version in use): the next start changes them")
    return ok("tables", f"version {facts.tables}")


def _clock(facts: StoreFacts) -> Finding:
    said = (
        f"the clock of the database is {abs(facts.clock_ahead):.1f} s {'ahead' if facts.clock_ahead > 0 else 'behind'}"
    )
    if abs(facts.clock_ahead) > AHEAD:
        return warning("clock of the database", said, "synchronise both machines with a time server")
    return ok("clock of the database", said)


def _newest(facts: StoreFacts, settings: Settings) -> Finding:
    if facts.newest is None:
        return ok("newest observation", "there are no observations yet")
    ahead = (facts.newest - time.time_ns()) / 1e9
    if ahead > settings.engine.future_tolerance:
        return warning(
            "newest observation",
            f"it is {ahead:,.0f} s ahead of this machine's clock",
            "if the clock is behind, set it right; else see POST /api/v1/signals/NAME/-/clock in docs/api.md",
        )
    return ok("newest observation", f"{max(0.0, -ahead):,.0f} s ago")


def _tokens(tokens: Sequence[TokenRow], *, private: bool) -> Finding:
    now = time.time_ns()
    valid = [one for one in tokens if one.expires is None or one.expires > now]
    expired = [one.name for one in tokens if one not in valid]
    soon = [one.name for one in valid if one.expires is not None and one.expires < now + SOON * 10**9]
    if not valid and (tokens or not private):
        return failed("tokens", "there is no valid one, so nobody can sign in", f"create one: {_NEW_TOKEN}")
    if not valid:
        return ok("tokens", "none, and none is needed: a browser on this machine may do everything")
    if soon:
        return warning(
            "tokens", f"these expire within {SOON // 86400} days: {', '.join(soon)}", f"create new ones: {_NEW_TOKEN}"
        )
    if expired:
        return warning(
            "tokens", f"these have expired: {', '.join(expired)}",
            f"create new ones ({_NEW_TOKEN}), or revoke those that nobody uses (tocsin token revoke NAME)",
        )  # fmt: skip
    return ok("tokens", f"{len(valid)} valid")


def _templates(facts: StoreFacts, settings: Settings) -> Finding:
    used, known = in_force(settings, facts.templates)
    problems = [f"{one.template.match!r} is not used: {one.problem}" for one in known if one.problem is not None]
    problems += missing_forecasters(used)
    if problems:
        return failed("stored templates", "; ".join(problems), "change them on the page, or install what is missing")
    return ok("stored templates", f"{len(facts.templates)} in force")


def _stuck(sink: str, messages: StuckMessages) -> Finding:
    many = "1 message has" if messages.count == 1 else f"{messages.count:,} messages have"
    return failed(
        f"messages to {sink}",
        f"{many} not been accepted since {time_text(messages.since)}: {messages.error}",
        "correct what the error says; the monitor sends them again until the sink accepts them",
    )
