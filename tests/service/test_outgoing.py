"""Servers that answer too much, too slowly, or with our own secrets."""

import asyncio
import gzip
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from pydantic import SecretStr

from tests.service.helpers import run
from tocsin_monitor.outgoing import SHORT, Answer, AnswerError, ask, open_client

SECRET = "hunter2-7f3a"
BOMB = gzip.compress(b"a" * 50_000_000)
OK = b"HTTP/1.1 200 OK\r\nConnection: close\r\n"


@asynccontextmanager
async def server(head: bytes, body: bytes = b"", *, drip: float | None = None) -> AsyncIterator[str]:
    """Answers every request with the same bytes; where they drip, one of them again and again."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            request = await reader.readuntil(b"\r\n\r\n")
            writer.write(head + b"\r\n" + body.replace(b"{request}", request))
            while drip is not None:
                writer.write(b"x")
                await writer.drain()
                await asyncio.sleep(drip)
            await writer.drain()
        except OSError:
            pass  # who asked has gone
        finally:
            writer.close()

    listening = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with listening:
        yield f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"


async def asked(url: str, path: str = "/", timeout: float = 60.0, **given: int) -> Answer:
    async with open_client(url, timeout=timeout, bearer_token=SecretStr(SECRET)) as client:
        return await ask(client, "GET", path, **given)


@pytest.mark.slow
@pytest.mark.parametrize("coding", [b"gzip", b"identity"])
def test_only_so_much_of_an_answer_is_read(coding: bytes) -> None:
    body = BOMB if coding == b"gzip" else b"a" * 50_000_000

    async def test() -> None:
        async with server(OK + b"Content-Encoding: " + coding + b"\r\n", body) as url:
            found = await asked(url, most=1000)
            assert (len(found.content), found.whole) == (1000, False)

    run(test)


def test_an_answer_that_is_compressed_all_the_same_is_read() -> None:
    async def test() -> None:
        async with server(OK + b"Content-Encoding: gzip\r\n", gzip.compress(b'{"a": 1}')) as url:
            found = await asked(url)
            assert (found.json(), found.whole) == ({"a": 1}, True)
        async with server(OK + b"Content-Encoding: gzip\r\n", b"junk") as url:
            with pytest.raises(AnswerError, match="claims to be gzip, but is not"):
                await asked(url)

    run(test)


def test_an_answer_must_be_there_in_time() -> None:
    async def test() -> None:
        began = time.monotonic()
        async with server(OK, drip=0.05) as url:
            with pytest.raises(AnswerError, match=r"no reply from 127\.0\.0\.1:\d+ within 1 s"):
                await asked(url, timeout=1.0, most=10**9)
        assert time.monotonic() - began < 10

    run(test)


def test_what_a_server_repeats_of_our_secrets_is_not_told() -> None:
    async def test() -> None:
        async with server(b"HTTP/1.1 403 Forbidden\r\n", b"a" * 200 + b"{request}") as url:
            address = url.replace("http://", f"http://someone:{SECRET}x@") + f"/hooks/{SECRET}y?key={SECRET}z"
            async with open_client(address, timeout=5, bearer_token=SecretStr(SECRET)) as client:
                with pytest.raises(AnswerError, match="HTTP 403") as refused:
                    await ask(client, "GET", f"{url}/hooks/{SECRET}y?key={SECRET}z")
            assert SECRET[:8] not in str(refused.value)
            assert len(str(refused.value)) < 400

    run(test)


def test_errors_are_read_only_as_far_as_they_are_shown() -> None:
    async def test() -> None:
        async with server(b"HTTP/1.1 500 Oh\r\n", b"a" * (10 * SHORT)) as url:
            with pytest.raises(AnswerError, match="HTTP 500: aaa"):
                await asked(url, most=10**9)

    run(test)
