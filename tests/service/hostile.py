"""Attack a monitor in every way that is known, each on a fresh one, and see whether it holds.

`python -m tests.service.hostile`, or some of the attacks by parts of their names.
"""

import argparse
import tempfile
import time
import traceback
from dataclasses import dataclass
from pathlib import Path

from tests.service.attacks import ATTACKS, Attack
from tests.service.attacks.ground import Ground
from tests.service.postgres import Postgres, find_programs


@dataclass(frozen=True)
class Outcome:
    """How an attack went."""

    attack: str
    error: Exception | None
    seconds: float
    memory: int
    log_bytes: int
    longest_wait: float

    @property
    def held(self) -> bool:
        """Whether the monitor held."""
        return self.error is None


def carry_out(attack: Attack, database: Postgres | None = None) -> Outcome:
    """Try one attack on a fresh monitor."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="tocsin-attack-") as folder:
        ground = Ground(
            Path(folder),
            attack.config,
            database if attack.postgresql else None,
            tokens=attack.tokens,
            files=attack.files,
        )
        error = None
        try:
            with ground:
                attack.run(ground)
                ground.check_alive()
        except Exception as found:
            error = found
        log_bytes = ground.log_bytes if ground.monitor.log.exists() else 0
    seconds = time.monotonic() - began
    return Outcome(attack.name, error, seconds, ground.memory, log_bytes, ground.sender.longest)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("attacks", nargs="*", help="parts of the names of attacks; all if none is given")
    parser.add_argument("--short", action="store_true", help="only those that are quick")
    given = parser.parse_args()
    chosen = [
        one
        for one in ATTACKS.values()
        if (one.short or not given.short) and (not given.attacks or any(part in one.name for part in given.attacks))
    ]
    programs = find_programs()
    database = Postgres(programs) if programs is not None and any(one.postgresql for one in chosen) else None
    outcomes = []
    try:
        if database is not None:
            database.start()
        print(f"{'attack':60} held  seconds  memory MB   log bytes  longest wait s")
        for one in chosen:
            if one.postgresql and database is None:
                print(f"{one.name:60} PostgreSQL is not installed")
                continue
            outcome = carry_out(one, database)
            outcomes.append(outcome)
            print(
                f"{one.name:60} {'yes' if outcome.held else 'NO':4} {outcome.seconds:8.1f} "
                f"{outcome.memory / 2**20:10.0f} {outcome.log_bytes:11d} {outcome.longest_wait:15.2f}",
                flush=True,
            )
            if outcome.error is not None:
                traceback.print_exception(outcome.error)
    finally:
        if database is not None:
            database.remove()
    memory = max((one.memory for one in outcomes), default=0) / 2**20
    log_bytes = max((one.log_bytes for one in outcomes), default=0)
    longest = max((one.longest_wait for one in outcomes), default=0.0)
    print(f"at most: memory_mb={memory:.0f} log_bytes={log_bytes} longest_wait_s={longest:.2f}")
    print(f"attacks={len(outcomes)} held={sum(one.held for one in outcomes)}")


if __name__ == "__main__":
    main()
