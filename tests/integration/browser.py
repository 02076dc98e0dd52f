"""A real browser without a window, asked over the DevTools protocol on a pipe: what a person would see of a page."""
import fcntl
import json
import os
import pathlib
import select
import subprocess
import tempfile
import time

from tandem_server import PATIENCE

# TANDEM_ROOT is set where the environment's packages lie in another root.
ROOT = os.environ.get("TANDEM_ROOT", "")
PROGRAM = ROOT + "/usr/lib/chromium/chromium-headless-shell"


class Browser:
    """One browser process with one page. Use as a context manager."""
    def __init__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="tandem-browser-", ignore_cleanup_errors=True)
        commands_in, self.commands = self._pipe()
        self.answers, answers_out = self._pipe()
        flags = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                 "--disable-background-networking", "--disable-component-update", "--hide-scrollbars",
                 "--remote-debugging-pipe", f"--user-data-dir={self.folder.name}")
        # The protocol is spoken on descriptors 3 and 4; the shell puts them there.
        shell = f'exec 3<&{commands_in} 4>&{answers_out} {commands_in}<&- {answers_out}>&-; exec "$@"'
        # Sanitizers watch the program under test, not the browser.
        settings = {k: v for k, v in os.environ.items() if not k.endswith("SAN_OPTIONS") and k != "LD_PRELOAD"}
        if ROOT:  # A library there names a folder of its own by a path that holds only inside.
            settings["LD_LIBRARY_PATH"] = ":".join(map(str, pathlib.Path(ROOT).glob("usr/lib/*/pulseaudio")))
        self.log = open(pathlib.Path(self.folder.name) / "log", "wb")
        self.process = subprocess.Popen(["bash", "-c", shell, "browser", PROGRAM, *flags],
                                        pass_fds=(commands_in, answers_out),
                                        stdin=subprocess.DEVNULL,
                                        stdout=self.log,
                                        stderr=self.log,
                                        env=dict(settings, HOME=self.folder.name))
        os.close(commands_in)
        os.close(answers_out)
        self.received, self.events, self.last, self.session = b"", [], 0, None
        try:
            target = self.ask("Target.createTarget", url="about:blank")["targetId"]
            self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
            for domain in ("Page", "Runtime", "Log", "Network"):
                self.ask(domain + ".enable")
        except BaseException:
            self.close()
            raise

    @staticmethod
    def _pipe():
        """A pipe whose descriptors are none of those that the browser wants."""
        ends = []
        for end in os.pipe():
            ends.append(fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10))
            os.close(end)
        return ends

    # ------------------------------------------------------------------ the protocol

    def _message(self, end):
        """The next message of the browser's."""
        while b"\0" not in self.received:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.answers], [], [], left)[0]:
                raise AssertionError("the browser does not answer")
            data = os.read(self.answers, 1 << 20)
            if not data:
                log = pathlib.Path(self.log.name).read_text(errors="replace")
                raise AssertionError(f"the browser has gone, code {self.process.wait(PATIENCE)}:\n{log[-2000:]}")
            self.received += data
        message, self.received = self.received.split(b"\0", 1)
        return json.loads(message)

    def ask(self, method, **params):
        """One command and its result; events that come meanwhile are kept."""
        self.last += 1
        command = {"id": self.last, "method": method, "params": params}
        if self.session:
            command["sessionId"] = self.session
        data = json.dumps(command).encode() + b"\0"
        while data:
            data = data[os.write(self.commands, data):]
        end = time.monotonic() + PATIENCE
        while (message := self._message(end)).get("id") != self.last:
            self.events.append(message)
        if "error" in message:
            raise AssertionError(f"{method}: {message['error']}")
        return message["result"]

    # ------------------------------------------------------------------ a page

    def open(self, file, width=1200, height=900, scheme="light"):
        """Opens a file as a person with such a window and such a taste would."""
        self.events.clear()
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
        self.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.url = pathlib.Path(file).resolve().as_uri()
        self.ask("Page.navigate", url=self.url)
        end = time.monotonic() + PATIENCE
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self._message(end))

    def value(self, expression):
        """The value of a JavaScript expression on the page; an exception there is one here."""
        done = self.ask("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in done:
            raise AssertionError(f"{expression}: {done['exceptionDetails']}")
        return done["result"].get("value")

    def press(self, key):
        self.ask("Input.dispatchKeyEvent", type="keyDown", key=key)
        self.ask("Input.dispatchKeyEvent", type="keyUp", key=key)

    def complaints(self):
        """What the page did that it should not: exceptions, errors in the console, anything asked of the network."""
        found = []
        for event in self.events:
            method, params = event.get("method"), event.get("params", {})
            if method == "Runtime.exceptionThrown":
                found.append(params["exceptionDetails"])
            elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
                found.append(params["entry"])
            elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
                found.append(params)
            elif method == "Network.requestWillBeSent" and params["request"]["url"] != self.url:
                found.append(params["request"]["url"])
        return found

    # ------------------------------------------------------------------ the process

    def close(self):
        for descriptor in (self.commands, self.answers):
            os.close(descriptor)
        try:
            self.process.wait(10)  # It ends when its pipe is closed.
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()
        self.folder.cleanup()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
