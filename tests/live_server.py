"""A small web site on the loopback address, with everything that goes wrong on one."""

from __future__ import annotations

import gzip
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Page:
    body: bytes | str = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    wait: float = 0.0  # seconds before the answer
    reset: bool = False  # close the connection instead of answering
    claim: int | None = None  # a wrong Content-Length


def page(*links: str, text: str = "") -> Page:
    anchors = "".join(f'<a href="{link}">{link}</a> ' for link in links)
    return Page(f"<html><title>t</title><body>{text} {anchors}</body></html>")


def redirect(location: str, status: int = 302) -> Page:
    return Page(status=status, headers={"Location": location})


def zipped(content: bytes) -> Page:
    return Page(gzip.compress(content), headers={"Content-Encoding": "gzip"})


@dataclass
class Asked:
    path: str
    time: float
    headers: dict[str, str]


class Site:
    """Serves ``pages``; a path that is not in them goes to ``other``."""

    def __init__(self, pages: dict[str, Page] | None = None) -> None:
        self.pages = pages or {}
        self.other: Callable[[str], Page] = lambda path: Page("gone", status=404)
        self.asked: list[Asked] = []
        self.busy = self.most_at_once = 0
        self.lock = threading.Lock()
        site = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                with site.lock:
                    asked = Asked(self.path, time.monotonic(), dict(self.headers))
                    site.asked.append(asked)
                    site.busy += 1
                    site.most_at_once = max(site.most_at_once, site.busy)
                try:
                    self.answer(site.pages.get(self.path) or site.other(self.path))
                except OSError:  # the crawler has hung up
                    self.close_connection = True
                finally:
                    with site.lock:
                        site.busy -= 1

            def answer(self, found: Page) -> None:
                time.sleep(found.wait)
                if found.reset:
                    self.close_connection = True
                    return
                body = found.body
                body = body.encode() if isinstance(body, str) else body
                self.send_response(found.status)
                length = len(body) if found.claim is None else found.claim
                if found.claim is not None:
                    self.close_connection = True
                headers = {"Content-Type": "text/html; charset=utf-8", **found.headers}
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(length))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, request: object, client_address: object) -> None:
                pass

        self.server = Server(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,))

    def url(self, path: str = "/", host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}{path}"

    @property
    def paths(self) -> list[str]:
        """What was asked for, robots.txt left out."""
        return [a.path for a in self.asked if a.path != "/robots.txt"]

    def __enter__(self) -> Site:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()
