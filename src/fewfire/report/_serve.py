"""A server of one page on this machine: `/`, `/data.json` and `/progress.json`, nothing else.

It listens on 127.0.0.1 alone, answers GET and HEAD, opens no path that a request names and writes nothing. A request
must name this very host, so that a page from elsewhere cannot reach it by a name that it lets point here (DNS
rebinding), and the answers may neither be framed nor used by other pages.
"""

from __future__ import annotations

import errno
import time
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import BoundedSemaphore
from typing import TYPE_CHECKING, Any

from fewfire._errors import FewfireError, invalid
from fewfire._validate import check_integer

if TYPE_CHECKING:
    from collections.abc import Callable

    from fewfire.report._live import Answer, LivePage

ADDRESS = "127.0.0.1"
IDLE = 60.0
"""Seconds after which a connection without a request is closed."""

CONNECTIONS = 64
"""At most so many at a time; a browser opens six."""

SHORT = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
"""Errors of accepting a connection where the system has run out of something."""

RETRY = 0.2
"""Seconds until a connection that could not be accepted is tried again: pending, it would wake the server at once."""

HEADERS = {
    "Cache-Control": "no-cache",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Content-Security-Policy": "frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
}


class PageServer(ThreadingHTTPServer):
    """Serves a live page until `shutdown`; use as a context manager.

    Parameters
    ----------
    page : LivePage
    port : int
        0 takes a free one; `url` says which.
    """

    daemon_threads = True
    block_on_close = False

    def __init__(self, page: LivePage, port: int = 0) -> None:
        check_integer("port", port, 0, 65535)
        self.answers: dict[str, tuple[str, Callable[[], Answer]]] = {
            "/": ("text/html; charset=utf-8", page.page),
            "/data.json": ("application/json", page.data),
            "/progress.json": ("application/json", page.progress),
        }
        try:
            super().__init__((ADDRESS, port), _Handler)
        except OSError as error:
            remedy = "choose another, or 0 for a free one"
            raise invalid("port", f"must be one that can be listened on ({error.strerror})", port, remedy) from None
        self._free = BoundedSemaphore(CONNECTIONS)
        names = (ADDRESS, "localhost")
        self.hosts = {f"{name}:{self.server_port}" for name in names} | (
            set(names) if self.server_port == 80 else set()
        )

    @property
    def url(self) -> str:
        """Where the page is."""
        return f"http://{ADDRESS}:{self.server_port}/"

    def get_request(self) -> tuple[Any, Any]:
        """The next connection; a pause where the system has no descriptor left for it."""
        try:
            return super().get_request()
        except OSError as error:
            if error.errno in SHORT:
                time.sleep(RETRY)
            raise

    def verify_request(self, request: Any, client_address: Any) -> bool:
        """Whether there is room for one more connection; one too many is closed."""
        return self._free.acquire(blocking=False)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a thread of its own."""
        try:
            super().process_request(request, client_address)
        except RuntimeError:  # the thread could not be started; one that was frees it itself
            self._free.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Until the connection is closed."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that goes away in the middle of an answer is no error."""


class _Handler(BaseHTTPRequestHandler):
    server: PageServer
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "fewfire", ""
    timeout = IDLE

    def do_GET(self) -> None:
        if (self.headers.get("Host") or "").lower() not in self.server.hosts:
            return self._send(HTTPStatus.MISDIRECTED_REQUEST, "text/plain", b"This page is for 127.0.0.1.\n")
        found = self.server.answers.get(self.path)
        if found is None:
            return self._send(HTTPStatus.NOT_FOUND, "text/plain", b"There is nothing here.\n")
        kind, make = found
        try:
            body, tag = make()
        except Exception as error:  # nothing a store may hold should end in an answer that never comes
            # The store is not there yet, gone, or damaged: the page shows what it has, and this text.
            known = isinstance(error, FewfireError)
            status = HTTPStatus.SERVICE_UNAVAILABLE if known else HTTPStatus.INTERNAL_SERVER_ERROR
            text = f"{error}" if known else f"The page could not be made: {type(error).__name__}: {error}"
            return self._send(status, "text/plain; charset=utf-8", f"{text}\n".encode(errors="backslashreplace"))
        if self.headers.get("If-None-Match") == f'"{tag}"':
            return self._send(HTTPStatus.NOT_MODIFIED, kind, b"", tag)
        return self._send(HTTPStatus.OK, kind, body, tag)

    do_HEAD = do_GET

    def _send(self, status: HTTPStatus, kind: str, body: bytes, tag: str | None = None) -> None:
        self.send_response(status)
        for name, value in HEADERS.items():
            self.send_header(name, value)
        if tag is not None:
            self.send_header("ETag", f'"{tag}"')
        if status is HTTPStatus.SERVICE_UNAVAILABLE:
            self.send_header("Refresh", "2")  # a browser that shows the text asks again until the store is there
        if status is not HTTPStatus.NOT_MODIFIED:
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD" and status is not HTTPStatus.NOT_MODIFIED:
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing: the terminal belongs to the command."""
