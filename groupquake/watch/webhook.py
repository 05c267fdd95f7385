"""Storms in; one POST of JSON for each, to a URL, out."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.client import HTTPException
from urllib.request import Request, urlopen

import msgspec

from groupquake.timing import WEBHOOK_S
from groupquake.watch.group_counts import Storm


@contextmanager
def posting(url: str, failed: Callable[[str], None]) -> Iterator[Callable[[Storm], None]]:
    """Give what posts a storm, one after the other, and waits for none until the block ends.

    `failed` gets a sentence where a storm was not taken; it is called in another thread.
    """

    def post(storm: Storm) -> None:
        body = msgspec.json.encode(storm)
        headers = {"Content-Type": "application/json"}
        try:
            with urlopen(Request(url, body, headers), timeout=WEBHOOK_S):  # noqa: S310 (the user's)
                pass
        except (OSError, HTTPException) as error:
            failed(f"--webhook {url}: {error}; the storm of {storm.group} was not posted")

    with ThreadPoolExecutor(1) as pool:
        yield lambda storm: [pool.submit(post, storm)].clear()
