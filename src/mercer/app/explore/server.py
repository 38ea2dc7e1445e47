"""The server of the page. It runs on this machine only, and answers only requests that have its token."""

import hmac
import json
import secrets
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from threading import Event, Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

from mercer.app.explore.exploration import Exploration
from mercer.app.files.plain_values import plain
from mercer.exceptions import shortened

LOOPBACK = "127.0.0.1"
# The files of the page. No other files are served.
ASSETS = {
    "": ("page.html", "text/html; charset=utf-8"),
    "icon.svg": ("icon.svg", "image/svg+xml"),
    "page.css": ("page.css", "text/css; charset=utf-8"),
    "page.js": ("page.js", "text/javascript; charset=utf-8"),
    "panels.js": ("panels.js", "text/javascript; charset=utf-8"),
    "points.js": ("points.js", "text/javascript; charset=utf-8"),
}
# The most bytes of a request. The numbers of 100 000 rows take some 600 000.
MOST_ASKED = 4_000_000
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors {frames}"
)
# The origins of notebooks that may show the page in a cell.
NOTEBOOKS = "http://localhost:* http://127.0.0.1:* https://localhost:* vscode-webview:"
# Exceptions that a request can cause. Any other exception is a defect.
EXPECTED = (ValueError, KeyError, TypeError, ArithmeticError, MemoryError, ImportError)


class Server(ThreadingHTTPServer):
    """Serve an exploration on the loopback address until it is stopped.

    Every path begins with a token that cannot be guessed, so that other users and other pages on this machine get no
    answer. The Host must be this address, which guards against DNS rebinding, and an Origin, if the browser sends one,
    must be that of the page.

    Parameters
    ----------
    exploration : Exploration
    port : int, default=0
        0 takes a free one.
    in_notebook : bool, default=False
        Whether pages of a notebook on this machine may show the page in a frame.
    """

    daemon_threads = True

    def __init__(self, exploration: Exploration, port: int = 0, in_notebook: bool = False) -> None:
        super().__init__((LOOPBACK, port), Handler)
        self.exploration, self.token = exploration, secrets.token_urlsafe(24)
        self.policy = POLICY.format(frames=NOTEBOOKS if in_notebook else "'none'")
        self.ended = Event()
        own = self.server_address[1]
        self.hosts = {f"{LOOPBACK}:{own}", f"localhost:{own}"}

    @property
    def address(self) -> str:
        """The address of the page, with its token."""
        return f"http://{LOOPBACK}:{self.server_address[1]}/{self.token}/"

    def start(self) -> "Server":
        """Start to serve in a separate thread."""
        Thread(target=self.serve_forever, daemon=True, kwargs={"poll_interval": 0.05}).start()
        return self

    def stop(self) -> None:
        """Stop, and free the port. An answer that is being computed is finished first."""
        self.shutdown()
        self.server_close()
        self.ended.set()
        with self.exploration.lock:
            return

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore errors of connections, such as a browser that has closed its side."""


class Handler(BaseHTTPRequestHandler):
    """Answer the requests of one connection."""

    server: Server
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "Mercer", ""

    def do_GET(self) -> None:
        """Answer with a file of the page, or with what the address asks for."""
        self._answer(lambda name, query: self._get(name, query))

    def do_POST(self) -> None:
        """Answer a request that is too long for an address."""
        self._answer(lambda name, _: self._post(name))

    def _answer(self, answer: Callable[[str, dict[str, str]], bool]) -> None:
        name, query = self._allowed()
        if name is None:
            self.close_connection = True  # the rest of the request is not read
            self._send(403, b"Forbidden: use the address that mercer explore printed.", "text/plain; charset=utf-8")
            return
        try:
            if not answer(name, query):
                self._send(404, b"Not found.", "text/plain; charset=utf-8")
        except (BrokenPipeError, ConnectionError):
            self.close_connection = True
        except EXPECTED as error:
            self._send_json({"error": shortened(" ".join(str(error).split()), 2000)}, 400)
        except Exception as error:
            self._send_json({"error": f"a defect in Mercer itself, {type(error).__name__}: {error}"}, 500)

    def _allowed(self) -> tuple[str | None, dict[str, str]]:
        """Return the name that is asked for and its query; the name is None if the request is not allowed."""
        parts = urlsplit(self.path)
        _, _, rest = parts.path.partition("/")
        token, slash, name = rest.partition("/")
        host, origin = self.headers.get("Host", ""), self.headers.get("Origin")
        own = {f"http://{each}" for each in self.server.hosts}
        right = hmac.compare_digest(token.encode(), self.server.token.encode())
        if not (right and slash and host in self.server.hosts and (origin is None or origin in own)):
            return None, {}
        return name, {key: values[-1] for key, values in parse_qs(parts.query).items()}

    def _get(self, name: str, query: dict[str, str]) -> bool:
        asked = self.server.exploration
        if name in ASSETS:
            file, kind = ASSETS[name]
            self._send(200, files("mercer.app.explore").joinpath("assets", file).read_bytes(), kind)
            return True
        numbers = {key: int(query[key]) for key in ("model", "row", "k") if key in query}
        with asked.lock:
            if name == "about":
                self._send_json(asked.about())
            elif name == "places":
                self._send(200, asked.places(numbers["model"]), "application/octet-stream")
            elif name == "column":
                self._send(200, asked.column(numbers["k"]), "application/octet-stream")
            elif name == "cut":
                self._send(200, asked.cut(numbers["model"], numbers["k"]), "application/octet-stream")
            elif name == "influence":
                values = asked.influence(numbers["model"], numbers["row"], query.get("output"))
                self._send(200, values, "application/octet-stream")
            elif name == "row":
                self._send_json(asked.row(numbers["row"]))
            elif name == "image":
                self._send(200, asked.rows.picture(asked.check_row(numbers["row"])), "image/png")
            elif name == "why":
                self._send_json(asked.why(numbers["model"], numbers["row"], query.get("output")))
            elif name == "effects":
                self._send_json(asked.effects(numbers["model"], numbers["row"]))
            elif name == "concepts":
                self._send_json(asked.concepts.as_document())
            else:
                return False
        return True

    def _post(self, name: str) -> bool:
        asked, question = self.server.exploration, self._question()
        with asked.lock:
            if name == "search":
                self._send_json(asked.search(question["text"]))
            elif name == "export":
                self._send(200, asked.export(question["rows"]).encode("utf-8", "replace"), "text/csv; charset=utf-8")
            elif name == "concept":
                self._send_json(
                    asked.concept(int(question["model"]), question["name"], question["rows"], int(question["groups"]))
                )
            else:
                return False
        return True

    def _question(self) -> dict[str, Any]:
        length = int(self.headers.get("Content-Length") or 0)
        if not 0 < length <= MOST_ASKED or "application/json" not in self.headers.get("Content-Type", ""):
            self.close_connection = True
            raise ValueError(f"a request must be JSON of at most {MOST_ASKED} bytes.")
        question = json.loads(self.rfile.read(length))
        if not isinstance(question, dict):
            raise ValueError("a request must be a JSON object.")
        return question

    def _send_json(self, value: Any, status: int = 200) -> None:
        body = json.dumps(plain(value), allow_nan=False).encode()
        self._send(status, body, "application/json")

    def _send(self, status: int, body: bytes, kind: str) -> None:
        self.send_response(status)
        for header, value in (
            ("Content-Type", kind),
            ("Content-Length", str(len(body))),
            ("Content-Security-Policy", self.server.policy),
            ("X-Content-Type-Options", "nosniff"),
            ("Referrer-Policy", "no-referrer"),
            ("Cache-Control", "no-store"),
            ("Cross-Origin-Resource-Policy", "same-origin"),
        ):
            self.send_header(header, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Do not log requests, which contain the token."""
