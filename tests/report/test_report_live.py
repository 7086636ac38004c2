"""The page that follows a sweep: what it reports of progress, how seldom it looks, and which requests it answers."""

import errno
import http.client
import http.server
import json
import socket
import threading
from contextlib import contextmanager, suppress

import numpy as np
import pytest
from chromium import until
from made_up_store import cell, row, spec
from test_report_page import NASTY, data_of

from fewfire import InvalidArgument
from fewfire.report import LivePage, PageServer, _live, _serve
from fewfire.report._live import ProgressReader, _speed
from fewfire.report._page import render_page
from fewfire.sweeps import SqliteStore, Sweep
from fewfire.sweeps.store._follow import StoreFollower
from fewfire.sweeps.store._protocol import SweepRecord

GRID = {
    "name": "Two widths",
    "problem": {"name": "parity", "n": 8, "k": 2},
    "network": {"start": "dense", "width": [5, 20]},
    "data": {"samples": 100, "test_samples": 40},
    "training": {"steps": 40, "learning_rate": 0.1, "evaluate": 10, "stop_error": 0.1},
    "trials": 4,
}


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def path(tmp_path):
    return tmp_path / "s.sqlite"


@pytest.fixture
def store(path):
    with SqliteStore(path, write=True) as opened:
        opened.record_sweep(SweepRecord("Two widths", 0.1, GRID))
        yield opened


def runs(width, trials, converged=20):
    """Runs of the grid."""
    chosen = [run for run in Sweep.from_dict(GRID).runs() if run.width == width and run.trial in trials]
    return [row(run, converged) for run in chosen]


@contextmanager
def served(page):
    with PageServer(page) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def ask(server, path="/", method="GET", host=None, **headers):
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)
    connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
    for name, value in {"Host": host or f"127.0.0.1:{server.server_port}", **headers}.items():
        connection.putheader(name.replace("_", "-"), value)
    connection.endheaders()
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer.status, dict(answer.getheaders()), body


def progress(page):
    (found,) = json.loads(page.progress().body)["stores"]
    return found


def test_progress_counts_the_runs_of_the_sweep_under_way(store, path):
    store.add(cell([None, None], width=99))  # of no sweep
    store.add(runs(5, range(2)))
    follower = StoreFollower(path)
    follower.look()
    reader = ProgressReader("s", follower)
    found = reader.read()
    assert (found.sweep, found.done, found.total, found.runs, found.successes) == ("Two widths", 2, 8, 4, 2)
    store.add(runs(5, (2, 3)) + runs(20, range(4)))
    follower.look()
    found = reader.read()
    assert (found.done, found.total, found.remaining) == (8, 8, 0.0)
    more = {**GRID, "trials": 5, "name": "More trials"}
    store.record_sweep(SweepRecord("More trials", 0.1, more))
    store.add([row(spec(width=5, trial=9), status="failed", message="no memory")])
    follower.look()
    found = reader.read()
    assert (found.sweep, found.done, found.total, found.failed) == ("More trials", 8, 10, 1)


def test_a_search_has_no_known_total(path):
    table = {**GRID, "data": {"test_samples": 40}, "search": {"axis": "data.samples", "low": 100, "high": 1000}}
    del table["trials"]
    with SqliteStore(path, write=True) as store:
        store.record_sweep(SweepRecord("A search", 0.1, table))
        store.record_sweep(SweepRecord("From the future", 0.1, {"name": "From the future", "orbit": [1, 2]}))
        store.add(runs(5, range(2)) + cell([None], width=99))
        found = progress(LivePage({"s": path}))
        assert (found["sweep"], found["done"], found["total"]) == ("From the future", 3, None)
        store.add(runs(5, range(3)))
        found = progress(LivePage({"s": path}))
    assert (found["sweep"], found["done"], found["total"], found["remaining"]) == ("A search", 3, None, None)


def test_the_pace_is_that_of_the_latest_runs():
    every = np.arange(0.0, 400.0, 2.0)
    ended, spent = np.ones(200, dtype=bool), np.full(200, 3.0)
    assert _speed(every, ended, spent) == pytest.approx((0.5, 1.5))
    paused = np.where(every < 350, every, every + 86_400)
    assert _speed(paused, ended, spent) == pytest.approx((0.5, 1.5))
    assert _speed(np.zeros(200), ended, spent) == (0.0, 0.0) == _speed(every, ~ended, spent)
    slow = np.array([0.0, 600.0, 1200.0])  # pauses are long only compared with what is usual
    assert _speed(slow, ended[:3], spent[:3]) == pytest.approx((1 / 600, 3 / 600))


def test_time_left_is_reckoned_by_cost(store, path):
    store.add(runs(5, range(4)))
    with store._writing("") as connection:
        connection.execute("UPDATE runs SET finished = strftime('%Y-%m-%dT%H:%M:%SZ', '2026-01-01', id || ' seconds')")
    found = progress(LivePage({"s": path}))
    assert found["rate"] == pytest.approx(1.0)
    assert found["remaining"] == pytest.approx(4 * 4.0)  # four runs are left, each four times as wide


def test_nothing_is_read_before_the_rest_is_over(store, path, monkeypatch):
    store.add(runs(5, range(1)))
    clock = Clock()
    page = LivePage({"s": path}, clock=clock)
    before = page.progress(), page.data()
    store.add(runs(5, range(4)))
    assert (page.progress(), page.data()) == before
    clock.now = _live.REST[0]
    assert progress(page)["done"] == 4 and page.data() == before[1]
    clock.now = _live.REST[1]
    assert json.loads(page.data().body)["summary"]["runs"] == 4
    # A look that takes long is followed by a rest that is as much longer.
    spent = iter([0.0, 3.0])
    monkeypatch.setattr(_live.time, "thread_time", lambda: next(spent, 3.0))
    store.add(runs(20, range(1)))
    clock.now += 10
    assert progress(page)["done"] == 5
    store.add(runs(20, range(2)))
    clock.now += 3.0 / _live.SHARE[0] - 1
    assert progress(page)["done"] == 5
    clock.now += 2
    assert progress(page)["done"] == 6
    assert sum(_live.SHARE) <= 0.01


def test_the_data_are_those_of_a_report(store, path):
    clock = Clock()
    page = LivePage({"s": path}, clock=clock)
    for rows in (runs(5, range(3)), runs(20, range(2), None), [row(spec(trial=7), status="failed", message="x")]):
        store.add(rows)
        clock.now += 1e6
        with SqliteStore(path) as opened:
            assert json.loads(page.data().body) == data_of(render_page(opened))
    store.add([row(spec(trial=7), 30)])  # the failed one, again
    store.record_sweep(SweepRecord("Two widths", 0.01, GRID))  # what counts as success has changed
    clock.now += 1e6
    with SqliteStore(path) as opened:
        assert json.loads(page.data().body) == data_of(render_page(opened))


def test_several_stores_are_followed(path, tmp_path, store):
    store.add(runs(5, range(2)))
    with SqliteStore(tmp_path / "other.sqlite", write=True) as other:
        other.add(runs(5, range(4)))
    page = LivePage({"one": path, "two": tmp_path / "other.sqlite"}, 0.2, title="Both")
    assert [found["store"] for found in json.loads(page.progress().body)["stores"]] == ["one", "two"]
    data = json.loads(page.data().body)
    assert data["title"] == "Both" and [start["name"] for start in data["groups"][0]["starts"]] == [
        "dense · one",
        "dense · two",
    ]


def test_a_page_may_be_opened_before_its_store_exists(store, tmp_path):
    clock, path = Clock(), tmp_path / "later.sqlite"
    with served(LivePage({"later": path}, clock=clock)) as server:
        status, headers, body = ask(server, "/")
        assert status == 503 and headers["Refresh"] == "2" and body.startswith(b"there is no store")
        with SqliteStore(path, write=True) as made:
            made.add(runs(5, range(3)))
        status, headers, _ = ask(server, "/")
        assert status == 200 and "Refresh" not in headers
        assert json.loads(ask(server, "/progress.json")[2])["stores"][0]["runs"] == 3


def test_answers_have_tags_and_are_not_sent_twice(store, path):
    store.add(runs(5, range(2)))
    clock = Clock()
    with served(LivePage({"s": path}, clock=clock)) as server:
        for place in ("/", "/data.json", "/progress.json"):
            status, headers, body = ask(server, place)
            assert (
                status == 200 and len(body) == int(headers["Content-Length"]) and headers["Cache-Control"] == "no-cache"
            )
            status, again, empty = ask(server, place, If_None_Match=headers["ETag"])
            assert (status, again["ETag"], empty) == (304, headers["ETag"], b"")
            status, again, empty = ask(server, place, method="HEAD")
            assert (status, again["ETag"], empty) == (200, headers["ETag"], b"")
        store.add(runs(5, range(4)))
        clock.now += 1e6
        assert ask(server, "/data.json", If_None_Match=headers["ETag"])[0] == 200


def test_only_this_machine_by_its_own_name_may_ask(store, path):
    with served(LivePage({"s": path})) as server:
        assert server.server_address[0] == "127.0.0.1" and server.url == f"http://127.0.0.1:{server.server_port}/"
        port = server.server_port
        assert ask(server, host=f"localhost:{port}")[0] == ask(server, host=f"LOCALHOST:{port}")[0] == 200
        for host in (
            f"evil.example:{port}",
            "127.0.0.1",
            f"127.0.0.1:{port + 1}",
            "evil.example",
            f"127.0.0.1:{port}.evil.example",
        ):
            status, headers, body = ask(server, "/data.json", host=host)
            assert status == 421 and b"stores" not in body and "ETag" not in headers
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        connection.putrequest("GET", "/", skip_host=True)
        connection.endheaders()
        assert connection.getresponse().status == 421
        connection.close()


@pytest.mark.parametrize(
    "place",
    ["/s.sqlite", "/../s.sqlite", "/%2e%2e/s.sqlite", "/data.json?x", "/data.json/", "/page.html", "/etc/passwd", "http://127.0.0.1/", "*"],
)  # fmt: skip
def test_there_is_nothing_else(store, path, place):
    with served(LivePage({"s": path})) as server:
        status, headers, body = ask(server, place)
        assert (status, body) == (404, b"There is nothing here.\n")
        assert (
            headers["X-Content-Type-Options"] == "nosniff" and headers["Cross-Origin-Resource-Policy"] == "same-origin"
        )
        assert headers["X-Frame-Options"] == "DENY" and "frame-ancestors 'none'" in headers["Content-Security-Policy"]
        assert "Access-Control-Allow-Origin" not in headers and "Python" not in headers["Server"]


def test_nothing_can_be_written(store, path):
    with served(LivePage({"s": path})) as server:
        for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS"):
            assert ask(server, method=method)[0] == 501


def test_the_live_page_may_ask_its_server_alone(store, path):
    store.add([row(spec(), status="failed", message=NASTY)])
    text = LivePage({NASTY: path}, title=NASTY).page().body.decode()
    assert "connect-src &#x27;self&#x27;" in text and "fetch(" in text
    assert "<img" not in text and text.count("<script") == 2
    with SqliteStore(path) as opened:
        static = render_page(opened)
    assert "connect-src" not in static and "fetch(" not in static and "/progress.json" not in static


def test_a_store_that_is_gone_is_reported_and_the_server_goes_on(store, path):
    clock = Clock()
    with served(LivePage({"s": path}, clock=clock)) as server:
        store.close()
        moved = path.rename(path.with_name("moved.sqlite"))
        clock.now += 1e6
        status, _, body = ask(server, "/progress.json")
        assert status == 503 and body.startswith(b"there is no store")
        moved.rename(path)
        clock.now += 1e6
        assert ask(server, "/progress.json")[0] == 200


def test_ports_that_cannot_be(store, path):
    page = LivePage({"s": path})
    with PageServer(page) as server:
        with pytest.raises(
            InvalidArgument, match=r"port must be one that can be listened on \(Address already in use\)"
        ):
            PageServer(page, server.server_port)
        with pytest.raises(InvalidArgument, match="port must be"):
            PageServer(page, 70_000)


@pytest.mark.browser
def test_the_page_follows_a_sweep_in_the_browser(store, path, show):
    clock = Clock()
    with served(LivePage({"s": path}, clock=clock)) as server:
        page = show(server.url, 360, "dark")
        assert (
            page.locator(".lede").inner_text() == "No finished runs yet." and not page.locator("#frontier").is_visible()
        )
        store.add(runs(5, range(2)))
        clock.now += 1e6
        until(page, "!document.getElementById('frontier').hidden")
        bar = page.get_by_role("progressbar", name="runs done of Two widths")
        until(page, "document.querySelector('[role=progressbar]') !== null")
        assert bar.get_attribute("aria-valuetext") == "2 of 8 runs" and page.title() == "25% · Two widths"
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        page.locator("#frontier").get_by_role("gridcell").first.click()
        page.locator("#filter").fill("width>=5")
        page.locator("#filter").focus()
        page.locator("#success summary").click()
        page.locator("#filter").focus()
        store.add(runs(5, range(4)) + runs(20, range(4)) + [row(spec(width=9), status="failed", message=NASTY)])
        clock.now += 1e6
        until(page, "document.querySelector('[role=progressbar]').getAttribute('aria-valuenow') === '8'")
        until(page, "document.querySelectorAll('#settings tbody tr').length === 3")
        assert page.locator("#live-title").inner_text() == "Finished: nothing is left to do."
        assert "8 training runs in 3 cells" in page.locator(".lede").inner_text()
        assert NASTY.split("\u2028")[0] in page.locator("#trouble").inner_text() and page.locator("img").count() == 0
        # What was looked at stays: the chosen width, the filter with the keyboard in it, what was folded out.
        assert page.locator("#cell-title").inner_text() == "Training at width 5, 100 examples"
        assert page.evaluate("[document.activeElement.id, document.activeElement.value]") == ["filter", "width>=5"]
        assert page.locator("#success details").evaluate("e => e.open")


def test_any_error_is_answered_in_words(store, path, monkeypatch):
    page = LivePage({"s": path})
    monkeypatch.setattr(page, "_shown", None)
    with served(page) as server:
        status, headers, body = ask(server, "/data.json")
        assert status == 500 and headers["Content-Type"].startswith("text/plain")
        assert body.decode() == (
            "The page could not be made: AttributeError: 'NoneType' object has no attribute 'get'\n"
        )
        assert ask(server, "/progress.json")[0] == 200  # and the server goes on


def test_a_server_without_descriptors_naps_and_goes_on(store, path, monkeypatch):
    naps, failures = [], [errno.EMFILE, errno.ENFILE, errno.ECONNABORTED]
    accept = http.server.ThreadingHTTPServer.get_request

    def short_of_them(server):
        if failures:
            raise OSError(failures.pop(0), "no")
        return accept(server)

    monkeypatch.setattr(http.server.ThreadingHTTPServer, "get_request", short_of_them)
    monkeypatch.setattr(_serve.time, "sleep", naps.append)
    with served(LivePage({"s": path})) as server:
        assert ask(server)[0] == 200
    assert naps == [_serve.RETRY] * 2 and not failures


def test_connections_are_bounded_and_given_back(store, path, monkeypatch):
    monkeypatch.setattr(_serve, "CONNECTIONS", 2)
    with served(LivePage({"s": path})) as server:
        open_ = [socket.create_connection(("127.0.0.1", server.server_port), timeout=10) for _ in range(2)]
        for one in open_:  # each asks once and stays
            one.sendall(f"GET /progress.json HTTP/1.1\r\nHost: 127.0.0.1:{server.server_port}\r\n\r\n".encode())
            assert one.recv(12) == b"HTTP/1.1 200"
        with pytest.raises((http.client.HTTPException, ConnectionError)):
            ask(server)
        for one in open_:
            one.close()
        for _ in range(1000):  # the server notices that they have gone
            with suppress(http.client.HTTPException, ConnectionError):
                assert ask(server)[0] == 200
                break
        else:
            pytest.fail("no connection was given back")


def test_ctrl_c_while_a_thread_starts_is_ctrl_c(store, path, monkeypatch):
    """The thread may have answered and given its place back by the time at which the start is interrupted."""

    def interrupted(server, request, client_address):
        server.process_request_thread(request, client_address)
        raise KeyboardInterrupt

    monkeypatch.setattr(http.server.ThreadingHTTPServer, "process_request", interrupted)
    with PageServer(LivePage({"s": path})) as server:
        socket.create_connection(("127.0.0.1", server.server_port)).close()  # asks nothing and goes
        with pytest.raises(KeyboardInterrupt):
            server.handle_request()
