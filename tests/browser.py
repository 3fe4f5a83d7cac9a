"""A headless Chromium for tests, driven through its pipe with the DevTools protocol."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
PATIENCE = 30.0  # seconds for an answer; a busy machine needs some
KEYS = {  # name: key code, text that it types
    "ArrowLeft": (37, ""),
    "ArrowRight": (39, ""),
    "Home": (36, ""),
    "End": (35, ""),
    "Tab": (9, ""),
    "Enter": (13, "\r"),
    " ": (32, " "),
}


def find() -> str | None:
    """Return the path of a Chromium on this machine, None if there is none."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


@contextmanager
def chromium(folder: Path) -> Iterator[Browser]:
    """Start a browser with a new profile below ``folder``; end it afterwards."""
    path = find()
    assert path is not None
    to_child, from_parent = os.pipe()
    to_parent, from_child = os.pipe()
    options = (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--disable-background-networking",
        "--disable-component-update",
        "--no-first-run",
        "--hide-scrollbars",
        "--remote-debugging-pipe",
        f"--user-data-dir={folder}",
        "about:blank",
    )
    # The browser reads from descriptor 3 and writes to 4.
    joined = f'exec "$@" 3<&{to_child} 4>&{from_child}'
    process = subprocess.Popen(
        ["bash", "-c", joined, "bash", path, *options],
        pass_fds=(to_child, from_child),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(to_child)
    os.close(from_child)
    try:
        yield Browser(from_parent, to_parent)
    finally:
        os.close(from_parent)  # it ends by itself when nobody speaks to it any more
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        os.close(to_parent)


class Browser:
    """Sends commands and collects events."""

    def __init__(self, out: int, back: int) -> None:
        self.out, self.back = out, back
        self.number = 0
        self.rest = b""
        self.events: list[dict[str, Any]] = []

    def send(self, method: str, session: str | None = None, **values: Any) -> Any:
        """Give a command; return its result."""
        self.number += 1
        message: dict[str, Any] = {
            "id": self.number,
            "method": method,
            "params": values,
        }
        if session is not None:
            message["sessionId"] = session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.out, data) :]
        deadline = time.monotonic() + PATIENCE
        while True:
            answer = self._read(deadline, method)
            if answer.get("id") == self.number:
                break
            self.events.append(answer)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return answer["result"]

    def _read(self, deadline: float, method: str) -> dict[str, Any]:
        while b"\0" not in self.rest:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.back], [], [], left)[0]:
                raise TimeoutError(f"no answer to {method} in {PATIENCE:.0f} s")
            read = os.read(self.back, 1 << 20)
            if not read:
                raise EOFError(f"the browser ended at {method}")
            self.rest += read
        first, _, self.rest = self.rest.partition(b"\0")
        return json.loads(first)

    def open(self, file: Path, *, width: int = 1200, height: int = 900) -> Tab:
        """Open a file in a new tab."""
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        session = self.send("Target.attachToTarget", targetId=target, flatten=True)
        tab = Tab(self, session["sessionId"], target)
        for domain in ("Page", "Runtime", "Network", "Log"):
            tab.send(f"{domain}.enable")
        tab.resize(width, height)
        tab.send("Page.navigate", url=file.as_uri())
        tab.wait("document.readyState === 'complete' && location.protocol === 'file:'")
        return tab


class Tab:
    """One open page."""

    def __init__(self, browser: Browser, session: str, target: str) -> None:
        self.browser, self.session, self.target = browser, session, target

    def send(self, method: str, **values: Any) -> Any:
        """Give a command to this tab."""
        return self.browser.send(method, self.session, **values)

    def close(self) -> None:
        """Close it."""
        self.browser.send("Target.closeTarget", targetId=self.target)

    def resize(self, width: int, height: int, *, phone: bool = False) -> None:
        """Set the size of the window."""
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=phone,
        )

    def prefer(self, **features: str) -> None:
        """Set what the reader prefers, such as ``color_scheme="dark"``."""
        wanted = [
            {"name": f"prefers-{name.replace('_', '-')}", "value": value}
            for name, value in features.items()
        ]
        self.send("Emulation.setEmulatedMedia", features=wanted)

    def run(self, code: str) -> Any:
        """Return the value of an expression."""
        answer = self.send(
            "Runtime.evaluate", expression=code, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in answer:
            raise RuntimeError(json.dumps(answer["exceptionDetails"])[:2000])
        return answer["result"].get("value")

    def wait(self, code: str) -> None:
        """Wait until an expression is true."""
        deadline = time.monotonic() + PATIENCE
        while not self.run(code):
            if time.monotonic() > deadline:
                raise TimeoutError(f"not true in {PATIENCE:.0f} s: {code}")
            time.sleep(0.02)

    def click(self, selector: str) -> None:
        """Click into the middle of an element."""
        x, y = self.run(
            f"(() => {{const e = document.querySelector({json.dumps(selector)});"
            "e.scrollIntoView({block: 'center', behavior: 'instant'});"
            "const b = e.getBoundingClientRect();"
            "return [b.x + b.width / 2, b.y + b.height / 2]})()"
        )
        self.mouse("mousePressed", x, y, button="left", clickCount=1)
        self.mouse("mouseReleased", x, y, button="left", clickCount=1)

    def mouse(self, kind: str, x: float, y: float, **values: Any) -> None:
        """Move or press the mouse."""
        self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, **values)

    def press(self, key: str, *, shift: bool = False) -> None:
        """Press a key."""
        code, text = KEYS[key]
        values: dict[str, Any] = {
            "key": key,
            "code": "Space" if key == " " else key,
            "windowsVirtualKeyCode": code,
            "modifiers": 8 if shift else 0,
        }
        down = "keyDown" if text else "rawKeyDown"
        self.send("Input.dispatchKeyEvent", type=down, text=text, **values)
        self.send("Input.dispatchKeyEvent", type="keyUp", **values)

    def type(self, text: str) -> None:
        """Type into what has the focus."""
        self.send("Input.insertText", text=text)

    def choose(self, selector: str, value: str) -> None:
        """Choose an option of a select."""
        self.run(
            f"(() => {{const e = document.querySelector({json.dumps(selector)}); "
            f"e.value = {json.dumps(value)}; "
            "e.dispatchEvent(new Event('change', {bubbles: true}))})()"
        )

    def complaints(self) -> list[str]:
        """Return what the page wrote to the console, and errors that nobody caught."""
        self.run("0")  # so that everything before has arrived
        kinds = {
            "Runtime.consoleAPICalled",
            "Runtime.exceptionThrown",
            "Log.entryAdded",
        }
        return [json.dumps(e["params"]) for e in self._own() if e["method"] in kinds]

    def requests(self) -> list[str]:
        """Return the addresses that were asked for."""
        self.run("0")
        asked = [e for e in self._own() if e["method"] == "Network.requestWillBeSent"]
        return [event["params"]["request"]["url"] for event in asked]

    def _own(self) -> Iterator[dict[str, Any]]:
        return (e for e in self.browser.events if e.get("sessionId") == self.session)

    def screenshot(self, file: Path, *, whole: bool = False) -> None:
        """Write a picture of what is seen, or of the whole page."""
        data = self.send("Page.captureScreenshot", captureBeyondViewport=whole)["data"]
        file.write_bytes(base64.b64decode(data))
