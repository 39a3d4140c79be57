"""A headless Chromium to look at a page with, by its own protocol over a pipe."""

import base64
import contextlib
import itertools
import json
import os
import shutil
import subprocess
import tempfile
import threading

#: Seconds until a browser that says nothing is taken for dead.
PATIENCE = 120


def command():
    """The installed browser; None if there is none."""
    return shutil.which("chromium") or shutil.which("chromium-browser")


@contextlib.contextmanager
def running():
    """A browser with one tab, which ends with the block."""
    to_it, ours = os.pipe(), os.pipe()
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as ends:
        # It reads from file 3 and writes to file 4.
        shell = f'exec "$0" "$@" 3<&{to_it[0]} 4>&{ours[1]}'
        arguments = [
            "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
            "--disable-dev-shm-usage", "--no-first-run", "--remote-debugging-pipe",
            f"--user-data-dir={folder}", "about:blank",
        ]  # fmt: skip
        process = subprocess.Popen(
            ["bash", "-c", shell, command(), *arguments],
            pass_fds=(to_it[0], ours[1]), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(to_it[0])
        os.close(ours[1])
        ends.callback(os.close, to_it[1])
        ends.callback(os.close, ours[0])
        watch = threading.Timer(PATIENCE, process.kill)
        watch.start()
        try:
            yield Tab(to_it[1], ours[0])
        finally:
            watch.cancel()
            process.kill()
            process.wait()


class Tab:
    """A page that is open, and what it asked of the network."""

    def __init__(self, write, read):
        self._write, self._read, self._numbers = write, read, itertools.count(1)
        self._rest, self._session = b"", None
        self.events = []
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        found = self.ask("Target.attachToTarget", targetId=target, flatten=True)
        self._session = found["sessionId"]
        for name in ("Page", "Network", "Runtime", "Log"):
            self.ask(f"{name}.enable")

    def ask(self, method, **given):
        """What the browser answers."""
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": given}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            found = self._next()
            if found.get("id") == number:
                assert "error" not in found, (method, found)
                return found["result"]
            self.events.append(found)

    def _next(self):
        while b"\0" not in self._rest:
            more = os.read(self._read, 1 << 20)
            assert more, "the browser has ended"
            self._rest += more
        message, _, self._rest = self._rest.partition(b"\0")
        return json.loads(message)

    def open(self, path, *, width=1200, height=900, scheme="light", scale=1, phone=False):
        """Open a file in a window of this size."""
        self.events.clear()
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height,
                 deviceScaleFactor=scale, mobile=phone)  # fmt: skip
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.ask("Emulation.setEmulatedMedia", media="screen", features=features)
        self.ask("Page.navigate", url=path.absolute().as_uri())
        while not any(one.get("method") == "Page.loadEventFired" for one in self.events):
            self.events.append(self._next())

    def evaluate(self, script):
        """What a script of ours says, which is none of the page's."""
        found = self.ask("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def requests(self):
        """The addresses that were asked for."""
        return [one["params"]["request"]["url"] for one in self.events
                if one.get("method") == "Network.requestWillBeSent"]  # fmt: skip

    def screenshot(self, path, *, whole=True):
        """A picture of all of the page."""
        size = self.ask("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        found = self.ask("Page.captureScreenshot", format="png", captureBeyondViewport=whole,
                         **({"clip": clip} if whole else {}))  # fmt: skip
        path.write_bytes(base64.b64decode(found["data"]))

    def print(self, path):
        """The page on paper."""
        found = self.ask("Page.printToPDF", printBackground=True)
        path.write_bytes(base64.b64decode(found["data"]))
