"""Answers a program's probes: /livez succeeds while its main loop is running, /readyz while it can do its work."""

import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

# The main loop reports every few seconds; after this time it counts as stuck.
_STILL_SECONDS = 120


class Health:
    def __init__(self, host: str, port: int) -> None:
        """Starts to listen. Raises OSError if the port is not free."""
        self.is_ready = False
        # None before the first report, as earlier steps have their own deadlines.
        self._turned: float | None = None
        health = self

        class Answer(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                checks = {"/livez": health._is_alive, "/readyz": lambda: health.is_ready}
                check = checks.get(self.path)
                self.send_response(404 if check is None else 200 if check() else 503)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                """Logs nothing, as probes come every few seconds."""

        class Server(ThreadingHTTPServer):
            address_family = socket.AF_INET6 if ":" in host else socket.AF_INET

        self._server = Server((host, port), Answer)
        threading.Thread(target=self._server.serve_forever, name="hone-health", daemon=True).start()

    def turn(self) -> None:
        """Reports that the main loop is running."""
        self._turned = time.monotonic()

    def _is_alive(self) -> bool:
        return self._turned is None or time.monotonic() - self._turned < _STILL_SECONDS
