"""A headless Chromium that tests steer: pages, scripts, pointer and keys, downloads and the log of requests.

The browser is spoken to in its own DevTools protocol over a pair of pipes, so that nothing listens on a port and the
policies of a page hold as they do for people.
"""

import base64
import json
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
OPTIONS = [
    "--headless=new",
    "--no-sandbox",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-sync",
    "--disable-features=OptimizationHints,MediaRouter",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--remote-debugging-pipe",
]


class Browser:
    """One page in a headless browser; use it as a context.

    Parameters
    ----------
    folder : path
        For its profile and for what it downloads, `folder / "downloads"`.
    width, height : int
        Of the window.
    """

    def __init__(self, folder: Any, width: int = 1280, height: int = 860) -> None:
        self.downloads = folder / "downloads"
        self.requests: list[str] = []
        self.problems: list[str] = []
        self._last, self._buffer = 0, b""
        options = [*OPTIONS, f"--window-size={width},{height}", f"--user-data-dir={folder / 'profile'}"]
        read_commands, self._write = os.pipe()
        self._read, write_answers = os.pipe()

        def give_pipes() -> None:  # the protocol wants them as files 3 and 4
            high = [os.dup(read_commands), os.dup(write_answers)]
            high = [os.dup(each) if each in (3, 4) else each for each in high]
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        self._process = subprocess.Popen(
            [str(BROWSER), *options, "about:blank"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=give_pipes,
            close_fds=False,
        )
        os.close(read_commands)
        os.close(write_answers)
        self._session: str | None = None
        targets = self.send("Target.getTargets")["targetInfos"]
        page = next(target for target in targets if target["type"] == "page")
        self._session = self.send("Target.attachToTarget", targetId=page["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.send(f"{domain}.enable")
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.send("Page.setDownloadBehavior", behavior="allow", downloadPath=str(self.downloads))

    def __enter__(self) -> "Browser":
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._session = None
            self.send("Browser.close")
        except (OSError, RuntimeError):
            self._process.terminate()
        self._process.wait(timeout=20)
        os.close(self._write)
        os.close(self._read)

    # ---- what tests do -------------------------------------------------------------------------------------------

    def open(self, address: str) -> None:
        """Go to an address."""
        self.send("Page.navigate", url=address)

    def run(self, script: str) -> Any:
        """Return what an expression is worth in the page; a promise is awaited."""
        found = self.send("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in found:
            raise RuntimeError(str(found["exceptionDetails"]))
        return found["result"].get("value")

    def wait(self, script: str, seconds: float = 20.0) -> Any:
        """Return what an expression is worth once it is true."""
        until = time.monotonic() + seconds
        while not (found := self.run(script)):
            if time.monotonic() > until:
                raise TimeoutError(f"never true: {script}; problems {self.problems}")
            time.sleep(0.02)
        return found

    def pointer(self, kind: str, x: float, y: float, buttons: int = 0, modifiers: int = 0) -> None:
        """Move, press or release the pointer at a place of the window; kinds are those of the protocol."""
        button = "left" if kind != "mouseMoved" or buttons else "none"
        self.send(
            "Input.dispatchMouseEvent",
            type=kind,
            x=x,
            y=y,
            button=button,
            buttons=buttons,
            clickCount=1,
            modifiers=modifiers,
        )

    def click(self, x: float, y: float) -> None:
        """Press and release the pointer."""
        self.pointer("mouseMoved", x, y)
        self.pointer("mousePressed", x, y, buttons=1)
        self.pointer("mouseReleased", x, y)

    def drag(self, places: list[tuple[float, float]], modifiers: int = 0) -> None:
        """Press at the first place, move through the others, release at the last."""
        self.pointer("mousePressed", *places[0], buttons=1, modifiers=modifiers)
        for place in places[1:]:
            self.pointer("mouseMoved", *place, buttons=1, modifiers=modifiers)
        self.pointer("mouseReleased", *places[-1], modifiers=modifiers)

    def picture(self, path: Any) -> None:
        """Write what the window shows as PNG."""
        path.write_bytes(base64.b64decode(self.send("Page.captureScreenshot", format="png")["data"]))

    def downloaded(self, name: str, seconds: float = 20.0) -> Any:
        """Return the path of a file once it was downloaded."""
        until, path = time.monotonic() + seconds, self.downloads / name
        while not path.exists():
            if time.monotonic() > until:
                raise TimeoutError(f"{name} was not downloaded")
            self.run("0")
            time.sleep(0.02)
        return path

    def cpu_seconds(self) -> float:
        """Return the CPU seconds of the browser and all its processes so far, from Linux's own counts."""
        parents, spent = {}, {}
        for path in Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = path.read_text().rpartition(")")[2].split()
            except OSError:  # it has ended meanwhile
                continue
            parents[int(path.parent.name)] = int(fields[1])
            spent[int(path.parent.name)] = int(fields[11]) + int(fields[12])
        own = {self._process.pid}
        while more := {child for child, parent in parents.items() if parent in own} - own:
            own |= more
        return sum(spent.get(each, 0) for each in own) / os.sysconf("SC_CLK_TCK")

    # ---- the protocol --------------------------------------------------------------------------------------------

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Return the browser's answer to a command; what it reports on the way is kept."""
        self._last += 1
        message = {"id": self._last, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._last:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self._keep(answer)

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            part = os.read(self._read, 1 << 20)
            if not part:
                raise RuntimeError("the browser went away")
            self._buffer += part
        line, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(line)

    def _keep(self, event: dict[str, Any]) -> None:
        parameters = event.get("params", {})
        if event.get("method") == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])
        elif event.get("method") == "Runtime.exceptionThrown":
            self.problems.append(str(parameters["exceptionDetails"]))
        elif event.get("method") == "Log.entryAdded" and parameters["entry"]["level"] == "error":
            self.problems.append(parameters["entry"]["text"])
