"""`tocsin sinks test` on a real monitor: a webhook and a mailbox that are told, and a sink that is not there."""

import sys
from pathlib import Path
from subprocess import CompletedProcess, run

import pytest

from tests.cli.calling import invoke, words
from tests.service.helpers import free_port
from tests.service.process import MonitorProcess
from tests.service.receiver import Receiver
from tests.service.sinks.post import Post
from tocsin_monitor.sinks.testing import MARK


def sinks(hook: Receiver, post: Post, nowhere: int) -> str:
    return f"""
        [[sinks.webhook]]
        name = "hook"
        url = "http://{hook.place}/hook"
        match = "plant/*"
        [[sinks.webhook]]
        name = "gone"
        url = "http://127.0.0.1:{nowhere}"
        [[sinks.mail]]
        name = "plant-mail"
        host = "127.0.0.1"
        port = {post.port}
        security = "none"
        sender = "tocsin@plant.example"
        recipients = ["a@plant.example"]
        title = "{{signal}}, severity {{severity:.1f}}"
        """


@pytest.mark.slow
def test_a_running_monitor_sends_test_messages(tmp_path: Path) -> None:
    hook, post, nowhere = Receiver(), Post(), free_port()
    with MonitorProcess(tmp_path, sinks(hook, post, nowhere)) as monitor:
        monitor.start()

        def test(*options: str) -> CompletedProcess[str]:
            command = [sys.executable, "-m", "tocsin", "sinks", "test", "--url", monitor.address, *options]
            return run(command, capture_output=True, text=True, check=False)

        said = test()
        assert said.returncode == 1
        lost = f"not delivered: the request to 127.0.0.1:{nowhere} failed: ConnectError: All connection attempts failed"
        assert set(said.stdout.splitlines()) == {"hook: delivered", f"gone: {lost}", "plant-mail: delivered"}
        assert [one["alerts"][0]["labels"]["signal"] for one in hook.taken] == [MARK, MARK]
        assert [mail["Subject"] for _, mail in post.mails] == [f"{MARK}, severity 0.0"]
        said = test("plant-mail")
        assert (said.returncode, said.stdout) == (0, "plant-mail: delivered\n")
        assert len(post.mails) == 2
        said = test("plant")
        assert said.returncode == 1
        assert "there is no sink 'plant'; the sinks are: hook, gone, plant-mail" in said.stderr
    hook.close()
    post.close()


def test_without_a_monitor_it_says_so() -> None:
    done = invoke("sinks", "test", "--url", f"http://127.0.0.1:{free_port()}")
    assert done.exit_code == 1
    assert "no monitor answers" in words(done)
