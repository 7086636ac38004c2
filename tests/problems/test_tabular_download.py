"""Downloads against a server that drips, loops, bursts and breaks off: every one ends in time, with an error that names the reason."""

import gzip
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from recorded_openml import CLASSES, arff, description

from fewfire import DataUnavailable, FileFormatError
from fewfire.problems import tabular
from fewfire.problems.tabular import _load, _openml
from fewfire.problems.tabular._load import DatasetInfo

TINY = DatasetInfo(99, "tiny", 3, 7, 31337)


class Server(ThreadingHTTPServer):
    """Serves the description and the table; `pages` maps paths to bytes, or to functions that write the answer."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.base = f"http://127.0.0.1:{self.server_port}"
        self.asked, self.over = [], threading.Event()
        self.tell(arff())

    def tell(self, text, **changes):
        told = description(31337, text, **{"url": f"{self.base}/data/tiny.arff", **changes})
        self.pages = {
            "/api/v1/json/data/31337": json.dumps({"data_set_description": told}).encode(),
            "/data/tiny.arff": text.encode(),
        }

    def handle_error(self, request, address):
        pass  # the client may leave at any time


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.asked.append(self.path)
        page = self.server.pages.get(self.path)
        if callable(page):
            page(self)
        elif page is None:
            self.send_error(404)
        else:
            self.give(page)

    def give(self, content, length=None, **headers):
        self.send_response(200)
        self.send_header("Content-Length", str(len(content) if length is None else length))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(content)

    def drip(self, piece):
        while not self.server.over.wait(0.02):
            self.wfile.write(piece)
            self.wfile.flush()

    def log_message(self, *arguments):
        pass


@pytest.fixture
def server(monkeypatch, tmp_path):
    server = Server()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    monkeypatch.setattr(_openml, "API", f"{server.base}/api/v1/json/data/")
    monkeypatch.setattr(_openml, "SECONDS", 0.7)
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path / "downloads"))
    monkeypatch.delenv("FEWFIRE_DATA", raising=False)
    monkeypatch.setitem(_load.DATASETS, "tiny", TINY)
    yield server
    server.over.set()
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_table_is_fetched_once_and_kept(server, tmp_path):
    assert tabular.load("tiny").y.tolist() == CLASSES
    assert tabular.load("tiny").y.tolist() == CLASSES
    assert server.asked == ["/api/v1/json/data/31337", "/data/tiny.arff"]
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == ["31337.gz", "tiny.arff.gz"]


def test_packed_and_redirected_answers(server):
    def moved(handler):
        handler.send_response(302)
        handler.send_header("Location", "/elsewhere")
        handler.end_headers()

    packed = gzip.compress(server.pages["/data/tiny.arff"])
    server.pages["/data/tiny.arff"] = moved
    server.pages["/elsewhere"] = lambda handler: handler.give(packed, Content_Encoding="gzip")
    assert tabular.load("tiny").y.tolist() == CLASSES


def drip_headers(handler):
    handler.wfile.write(b"HTTP/1.1 200 OK\r\n")
    handler.drip(b"X-More: 1\r\n")


def drip_body(handler):
    handler.send_response(200)
    handler.end_headers()
    handler.drip(b"%")


def silence(handler):
    handler.server.over.wait(30)


@pytest.mark.parametrize("slow", [drip_headers, drip_body, silence])
@pytest.mark.parametrize("path", ["/api/v1/json/data/31337", "/data/tiny.arff"])
def test_a_slow_drip_ends(server, slow, path, tmp_path):
    server.pages[path] = slow
    with pytest.raises(
        DataUnavailable,
        match=r"OpenML could not be asked \((no complete answer came in time|.*timed out|got more than 100 headers)",
    ):
        tabular.load("tiny")


def test_endless_redirects_end(server):
    def around(handler):
        handler.send_response(302)
        handler.send_header("Location", "/data/tiny.arff")
        handler.end_headers()

    server.pages["/data/tiny.arff"] = around
    with pytest.raises(DataUnavailable, match="OpenML could not be asked .*redirect"):
        tabular.load("tiny")


def test_answers_that_are_too_large_are_not_kept(server, monkeypatch, tmp_path):
    monkeypatch.setattr(_openml, "SECONDS", 30)
    monkeypatch.setattr(_openml, "DESCRIPTION_BYTES", 10_000)
    bomb = gzip.compress(bytes(200_000_000), 9)
    server.pages["/data/tiny.arff"] = lambda handler: handler.give(bomb, Content_Encoding="gzip")
    with pytest.raises(FileFormatError, match=r"tiny.arff has more than 11,792 bytes"):
        tabular.load("tiny")
    server.pages["/data/tiny.arff"] = lambda handler: handler.drip(b"%" * 65536)
    server.pages["/data/tiny.arff"] = bytes(50_000_000)
    with pytest.raises(FileFormatError, match=r"tiny.arff has more than 11,792 bytes"):
        tabular.load("tiny")
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["31337.gz"]


def test_answers_that_break_off(server):
    content = server.pages["/data/tiny.arff"]
    server.pages["/data/tiny.arff"] = lambda handler: handler.give(content[:50], len(content))
    with pytest.raises(DataUnavailable, match="ended early"):
        tabular.load("tiny")
    packed = gzip.compress(content)
    server.pages["/data/tiny.arff"] = lambda handler: handler.give(packed[:50], Content_Encoding="gzip")
    with pytest.raises(DataUnavailable, match="ended early"):
        tabular.load("tiny")
    server.pages["/data/tiny.arff"] = lambda handler: handler.give(b"no gzip", Content_Encoding="gzip")
    with pytest.raises(DataUnavailable, match="is damaged"):
        tabular.load("tiny")
    server.pages["/data/tiny.arff"] = content + b"\n"
    with pytest.raises(FileFormatError, match="does not have the checksum of its description"):
        tabular.load("tiny")
    server.pages["/data/tiny.arff"] = content
    assert tabular.load("tiny").y.tolist() == CLASSES


@pytest.mark.parametrize(
    "content",
    [b"", b"[]", b"{}", b"null", b"\xff", b"[" * 100_000, b'{"data_set_description": {"url": 1}}',
     b'{"data_set_description": {"url": 1, "md5_checksum": 2, "default_target_attribute": 3}}', b"9" * 5000],
)  # fmt: skip
def test_descriptions_that_are_none(server, content):
    server.pages["/api/v1/json/data/31337"] = content
    with pytest.raises(FileFormatError, match="OpenML's answer for 'tiny' cannot be used: the description"):
        tabular.load("tiny")


def test_large_tables_get_more_time():
    higgs = tabular.DATASETS["Higgs"]
    assert 300 < _openml.SECONDS + higgs.rows * (higgs.features + 1) / _openml.CELLS_PER_SECOND < 400
