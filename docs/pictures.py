"""Makes the pictures of the documentation from real runs: `python docs/pictures.py [NAME…]`.

NAME is report, incident or live; all of them by default, in about ten minutes. It needs Debian's
Chromium, and what the browser tests need. Nothing is shown on a screen.

- `images/report.png`: the report of a rolling bounce, on real brokers, as it opens;
  `images/rolling-bounce.png`: its timeline
- `images/incident.png`: the page of a broker's logs that the tests keep
- `images/live-page.png` and `live-page.webp`: the live page of a demo that the page has started;
  the second is moving, and below 1.5 MB
"""

import base64
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

HERE = Path(__file__).parent
IMAGES = HERE / "images"
LOGS = HERE.parent / "tests" / "recorded" / "stock" / "3.9.1-java"
GROUPQUAKE = (sys.executable, "-m", "groupquake")
QUIET = ("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-dev-shm-usage", "--hide-scrollbars")  # fmt: skip
SIZE = (1400, 900)
MOVING = (840, 540)
"""The size of the moving picture, in pixels: as wide as a README."""
FRAME_MS = 500
FRAMES = 40
"""As long as the faults of a demo."""
PATIENCE_S = 180.0
"""Until a page is there, or the first fault is due."""
MOST_BYTES = 1_500_000
ENCODE = """
async ([png, width, height]) => {
  const image = new Image();
  image.src = "data:image/png;base64," + png;
  await image.decode();
  const canvas = document.createElement("canvas");
  Object.assign(canvas, {width, height});
  const context = canvas.getContext("2d", {alpha: false});
  context.imageSmoothingQuality = "high";
  context.drawImage(image, 0, 0, width, height);
  return canvas.toDataURL("image/webp", 0.8).split(",")[1];
}
"""
"""Scales a PNG and makes a WebP of it, both as base64."""


def main(names: Sequence[str]) -> None:
    """Make the pictures of some names, or all."""
    made = {"report": report, "incident": incident, "live": live}
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        chromium = shutil.which("chromium")
        browser = playwright.chromium.launch(executable_path=chromium, args=list(QUIET))
        for name in names or made:
            made[name](browser, Path(folder))
        browser.close()


def report(browser: Browser, folder: Path) -> None:
    """Run a rolling bounce, and picture its report."""
    words = ("run", "rolling-bounce", "--seed", "1")
    subprocess.run([*GROUPQUAKE, *words], cwd=folder, check=True)
    page = _picture(browser, folder / "runs" / "latest" / "report.html", "report.png")
    page.locator("#timeline").screenshot(path=IMAGES / "rolling-bounce.png")


def incident(browser: Browser, folder: Path) -> None:
    """Report a broker's logs, and picture the page. The exit code is that of an unknown verdict."""
    done = subprocess.run([*GROUPQUAKE, "report", LOGS], cwd=folder, check=False)
    assert done.returncode == 2
    _picture(browser, folder / "incident" / "incident.html", "incident.png")


def live(browser: Browser, folder: Path) -> None:
    """Start a demo on the page, and picture the live page until its faults are over."""
    with _served(folder) as url:
        locust, page = _page(browser), _page(browser)
        locust.goto(url)
        locust.get_by_role("button", name=re.compile("^Start")).first.click()
        page.goto(f"{url}groupquake/")
        _until(lambda: _breaks(folder), "no fault is due yet")
        frames = []
        for _ in range(FRAMES):
            frames.append(page.screenshot())
            page.wait_for_timeout(FRAME_MS)  # how long a frame is shown
        (IMAGES / "live-page.png").write_bytes(frames[len(frames) * 2 // 3])
        encoder = browser.new_page()
        encoded = [_webp(encoder, frame) for frame in frames]
        while len(moving := animated(encoded, FRAME_MS * len(frames) // len(encoded))) > MOST_BYTES:
            encoded = encoded[::2]
        (IMAGES / "live-page.webp").write_bytes(moving)


@contextmanager
def _served(folder: Path) -> Iterator[str]:
    """Serve the page of a demo; it ends with the block."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    words = ("run", "demo", "--ui", "--web-port", str(port), "--seed", "1")
    process = subprocess.Popen([*GROUPQUAKE, *words], cwd=folder, stdin=subprocess.DEVNULL)
    try:
        _until(lambda: _listens(port), "there is no page")
        yield f"http://127.0.0.1:{port}/"
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(timeout=180)


def _until(holds: Callable[[], bool], missing: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, missing
        time.sleep(0.2)


def _breaks(folder: Path) -> bool:
    """Whether the latest run has come to the phase in which things break."""
    journal = folder / "runs" / "latest" / "journal.jsonl"
    return journal.exists() and '"phase": "impact"' in journal.read_text("utf-8")


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True


def _page(browser: Browser) -> Page:
    return browser.new_page(viewport={"width": SIZE[0], "height": SIZE[1]})


def _picture(browser: Browser, file: Path, name: str) -> Page:
    page = _page(browser)
    page.goto(file.resolve().as_uri())
    page.wait_for_load_state("networkidle")
    page.screenshot(path=IMAGES / name)
    return page


def _webp(page: Page, png: bytes) -> bytes:
    text: str = page.evaluate(ENCODE, [base64.b64encode(png).decode(), *MOVING])
    return base64.b64decode(text)


def animated(frames: Sequence[bytes], frame_ms: int) -> bytes:
    """Return still WebP pictures of one size as one that moves, for ever (WebP's RIFF container).

    A picture that is as the one before lengthens it.
    """
    shown: list[tuple[bytes, int]] = []
    for frame in frames:
        again = shown and shown[-1][0] == frame
        shown[-1:] = (
            [(frame, shown[-1][1] + frame_ms)] if again else [*shown[-1:], (frame, frame_ms)]
        )
    size = b"".join(_three(side - 1) for side in MOVING)
    chunks = _chunk(b"VP8X", b"\2\0\0\0" + size) + _chunk(b"ANIM", b"\xff\xff\xff\xff\0\0")
    for frame, lasting_ms in shown:
        pixels = frame[frame.index(b"VP8 ") :]  # behind chunks about the whole picture
        head = _three(0) * 2 + size + _three(lasting_ms) + b"\2"
        chunks += _chunk(b"ANMF", head + pixels)
    return b"RIFF" + struct.pack("<I", 4 + len(chunks)) + b"WEBP" + chunks


def _three(number: int) -> bytes:
    return number.to_bytes(3, "little")


def _chunk(name: bytes, data: bytes) -> bytes:
    return name + struct.pack("<I", len(data)) + data + b"\0" * (len(data) % 2)


if __name__ == "__main__":
    main(sys.argv[1:])
