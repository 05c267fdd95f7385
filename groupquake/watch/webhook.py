"""Storms in; one POST of JSON for each, to a URL, out."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.client import HTTPException
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import click
import msgspec

from groupquake.timing import WEBHOOK_S
from groupquake.watch.group_counts import Storm


@contextmanager
def posting(url: str, notice: Callable[[str], None]) -> Iterator[Callable[[Storm], object]]:
    """Give what posts a storm, one after the other; the end of the block waits for one alone.

    `notice` gets a sentence, in another thread, where a storm is not taken. Raises UsageError.
    """
    if not url.startswith(("http://", "https://")):
        raise click.UsageError(f"--webhook {url!r} is no URL; write http://… or https://…")

    def post(storm: Storm) -> None:
        body = msgspec.json.encode(storm)
        headers = {"Content-Type": "application/json"}
        try:
            with urlopen(Request(url, body, headers), timeout=WEBHOOK_S):  # noqa: S310 (the user's)
                pass
        except (OSError, ValueError, HTTPException) as error:
            if isinstance(error, HTTPError):
                error.close()
            notice(f"--webhook {url}: {error}; the storm of {storm.group} was not posted")

    pool = ThreadPoolExecutor(1)
    try:
        yield lambda storm: pool.submit(post, storm)
    finally:
        pool.shutdown(cancel_futures=True)  # the end waits for one POST at most
