"""A headless Chromium, spoken to over the pipe of its DevTools: no port, no driver, no package."""

import json
import os
import shutil
import subprocess
import time
from collections import deque

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
SECONDS = 60.0


def found():
    """The browser's path, or None."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Browser:
    """One page of a browser that is closed at the end of the ``with`` block."""

    def __init__(self, profile):
        read, self._says = os.pipe()
        self._hears, write = os.pipe()
        switches = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run")
        # The browser reads its orders from descriptor 3 and answers on 4.
        shell = f'exec 3<&{read} 4>&{write}; exec "$@"'
        command = [found(), *switches, f"--user-data-dir={profile}", "--remote-debugging-pipe", "about:blank"]
        self._process = subprocess.Popen(
            ["bash", "-c", shell, "bash", *command],
            pass_fds=(read, write),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(read)
        os.close(write)
        self._number, self._rest, self._session = 0, b"", None
        self.events = deque()
        (target,) = [t for t in self.order("Target.getTargets")["targetInfos"] if t["type"] == "page"]
        attached = self.order("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.order(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.kill()
        self._process.wait()
        os.close(self._says)
        os.close(self._hears)

    def order(self, method, **parameters):
        """Send one command and return its result; events on the way are kept."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._says, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer["error"]
                return answer["result"]
            self.events.append(answer)

    def open(self, path, width=1200, height=900, mobile=False):
        """Load a file in a window of this size, and wait until it is there."""
        self.order("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=mobile)
        self.events.clear()
        self.order("Page.navigate", url=path.as_uri())
        limit = time.monotonic() + SECONDS
        while not any(event["method"] == "Page.loadEventFired" for event in self.events):
            assert time.monotonic() < limit, "the page did not load"
            self.events.append(self._next())

    def run(self, script):
        """The value of an expression in the page."""
        answer = self.order("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def _next(self):
        while b"\0" not in self._rest:
            part = os.read(self._hears, 1 << 16)
            assert part, "the browser has ended"
            self._rest += part
        message, _, self._rest = self._rest.partition(b"\0")
        return json.loads(message)
