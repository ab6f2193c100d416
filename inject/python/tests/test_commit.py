# SPDX-License-Identifier: Apache-2.0

"""Committers with a service of their own; commit_test.go has the real one, and processes that are killed."""

import contextlib
import errno
import http.server
import json
import os
import pathlib
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import threading
import time
import unittest
import unittest.mock
import warnings

from lockstep_scope import commit, records, service
from lockstep_scope.bilateral import COMMITTED, TENTATIVE, Part, Slot
from lockstep_scope.commit import Committer, Lost, NotConfirmed, Restarted
from lockstep_scope.records import Record
from lockstep_scope.service import Refused, Service, Unreachable

from .test_bilateral import Board


@contextlib.contextmanager
def ends_soon(seconds=20):
    """Raises in what takes so long."""

    def late(*_):
        raise AssertionError(f"not ended after {seconds} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hangs_up = False
    delay = 0.0

    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        server = self.server
        with server.mutex:
            server.messages.append((dict(self.headers), message))
            a = server.board.tell(message["domain"], message)
        status, of = 200, {"error": "it is over"}
        if server.token and self.headers["Authorization"] != f"Bearer {server.token}":
            status, of = 401, "missing"
        elif server.fault:
            status, of = server.fault
        elif a is None:
            status = 409
        else:
            missing = [] if a.heard == a.domains else ["rank 1"]
            of = {
                "version": 1, "domains": a.domains, "heard": a.heard, "session": a.session, "joined": a.joined,
                "recoverable": a.recoverable and {"epoch": a.recoverable[0], "attempt": a.recoverable[1]},
                "lost": a.lost and {"epoch": a.lost[0], "attempt": a.lost[1]},
                "saves": [{"epoch": e, "attempt": s, **vars(n)} for (e, s), n in a.saves.items()],
                "missing": missing, "missing_count": a.domains - a.heard or 1,
            }
        data = json.dumps(of).encode()
        time.sleep(self.delay)
        self.close_connection = self.hangs_up
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        with contextlib.suppress(BrokenPipeError):
            self.wfile.write(data)

    def log_message(self, *args):
        pass


class Case(unittest.TestCase):
    def setUp(self):
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.mutex, self.server.messages, self.server.fault, self.server.token = threading.Lock(), [], None, ""
        self.server.board = Board(2)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))
        thread.start()
        self.addCleanup(lambda: (self.server.shutdown(), thread.join(), self.server.server_close()))
        pause = unittest.mock.patch.object(commit, "_PAUSE", 0.01)  # this service answers at once
        pause.start()
        self.addCleanup(pause.stop)
        work = tempfile.TemporaryDirectory(prefix="lockstep-")
        self.addCleanup(work.cleanup)
        self.folder = pathlib.Path(work.name)

    def committer(self, rank=0, domains=2, **kw):
        c = Committer("job", f"rank {rank}", domains, self.folder, url=self.url, **kw)
        self.addCleanup(c.close)
        return c

    def alone(self):
        self.server.board = Board(1)
        return self.committer(domains=1)

    def part(self, name="step-10", text="tensors"):
        path = self.folder / name
        path.mkdir(parents=True, exist_ok=True)
        (path / "data").write_text(text)
        return path

    def both(self, call):
        """Calls with each of two committers at once, and returns what came of it."""
        out = {}

        def run(i, c):
            try:
                out[i] = call(i, c)
            except Exception as e:
                out[i] = e

        threads = [threading.Thread(target=run, args=(i, c)) for i, c in enumerate(self.pair)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        return [out[0], out[1]]


class CommitterTest(Case):
    def begin(self):
        self.pair = [self.committer(i) for i in range(2)]
        return self.both(lambda i, c: c.recover(20))

    def save(self, epoch):
        return self.both(lambda i, c: c.commit(epoch, [self.part(f"step-{epoch}/{i}")], 20))

    def test_saves_and_recovers(self):
        self.assertEqual([None, None], [f.epoch for f in self.begin()])
        self.assertEqual([None, None], self.save(10))
        self.assertEqual([(10,), (10,)], [c.held() for c in self.pair])
        self.assertEqual([None, None], self.save(20))
        self.assertEqual([(20,), (20,)], [c.held() for c in self.pair])
        for c in self.pair:
            c.close()
        found = self.begin()
        self.assertEqual([20, 20], [f.epoch for f in found])
        self.assertEqual(found[0].attempt, found[1].attempt)

    def test_a_save_that_one_has_no_part_of_is_let_go(self):
        self.begin()
        self.save(10)
        with self.assertRaisesRegex(NotConfirmed, r"commit save 20: waited for 1 of 2 domains"):
            self.pair[0].commit(20, [self.part("step-20/0")], 0.3)
        self.assertEqual((10, 20), self.pair[0].held())
        for c in self.pair:
            c.close()
        self.assertEqual([10, 10], [f.epoch for f in self.begin()])
        self.assertEqual([(10,), (10,)], [c.held() for c in self.pair])
        self.assertEqual([None, None], self.save(20), "again, as another attempt")

    def test_what_one_gave_up_is_gone_on_with(self):
        with unittest.mock.patch.object(commit, "_BEAT", 0.05):
            self.begin()
            with self.assertRaises(NotConfirmed):
                self.pair[0].commit(10, [self.part("step-10/0")], 0.1)
            self.pair[1].commit(10, [self.part("step-10/1")], 20)
        self.assertIn(COMMITTED, [s["state"] for _, m in self.server.messages for s in m["slots"]])

    def test_a_part_that_is_gone(self):
        self.begin()
        self.save(10)
        for c in self.pair:
            c.close()
        (self.folder / "step-10/1/data").unlink()
        with self.assertWarnsRegex(RuntimeWarning, "part of save 10 is not there any more: step-10/1: got 0 files with 0 bytes; want 1 with 7"):
            found = self.begin()
        for f in found:
            self.assertIsInstance(f, Lost)
            self.assertIn("save 10 was held by all domains, and is not any more; there is none that all hold", str(f))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.assertEqual([None, None], [f.epoch for f in self.both(lambda i, c: c.recover(20, older=True))])

    def test_all_parts_are_gone(self):
        """Somebody removes what all hold, of a shared file system."""
        self.begin()
        self.save(10)
        for c in self.pair:
            c.close()
        shutil.move(self.folder / "step-10", self.folder / "away")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for again in range(2):
                for f in self.begin():
                    self.assertRegex(repr(f), "Lost.*save 10 was held by all domains, and is not any more; there is none that all hold")
                self.assertEqual([(10,), (10,)], [c.held() for c in self.pair], "whoever brings a file back")
                for c in self.pair:
                    c.close()
            shutil.move(self.folder / "away", self.folder / "step-10")
            self.assertEqual([10, 10], [f.epoch for f in self.begin()], "has it as before")
            shutil.rmtree(self.folder / "step-10")
            self.assertEqual([Lost, Lost], [type(f) for f in self.both(lambda i, c: c.recover(20))])
            self.assertEqual([None, None], [f.epoch for f in self.both(lambda i, c: c.recover(20, older=True))])
            self.assertEqual([(), ()], [c.held() for c in self.pair])
            self.assertEqual([None, None], [f.epoch for f in self.both(lambda i, c: c.recover(20))])

    def test_the_only_part_is_gone(self):
        c = self.alone()
        c.recover(20)
        c.commit(10, [self.part()])
        shutil.rmtree(self.folder / "step-10")
        with self.assertWarns(RuntimeWarning), self.assertRaises(Lost):
            c.recover(20)

    def test_one_that_was_begun_anew(self):
        self.begin()
        self.pair[1].close()
        self.pair[1] = self.committer(1)
        first = threading.Thread(target=lambda: self.pair[1].recover(20))
        first.start()
        with self.assertRaisesRegex(Restarted, "commit save 10: a domain was begun anew"):
            self.pair[0].commit(10, [self.part()], 20)
        self.pair[0].recover(20)
        first.join()

    def test_after_restarted_nothing_is_saved(self):
        self.begin()
        self.save(10)
        self.pair[1].close()
        self.pair[1] = self.committer(1)
        with self.assertRaises(NotConfirmed):
            self.pair[1].recover(0.1)
        with self.assertRaisesRegex(Restarted, "commit save 20: a domain was begun anew"):
            self.pair[0].commit(20, [self.part("step-20/0")], 20)
        for _ in range(9):
            with self.assertRaisesRegex(RuntimeError, "commit save 20: want recover.. first"):
                self.pair[0].commit(20, [self.part("step-20/0")], 20)
        self.assertEqual((10,), self.pair[0].held())
        self.assertEqual([10], [s.epoch for s in self.pair[0]._record.read()])
        self.assertEqual([10, 10], [f.epoch for f in self.both(lambda i, c: c.recover(20))])

    def test_nobody_else(self):
        with self.assertRaisesRegex(NotConfirmed, r"recover: waited for 1 of 2 domains \(rank 1\); 1 were not heard of") as caught:
            self.committer().recover(0.2)
        self.assertEqual(("rank 1",), caught.exception.missing)

    def test_no_service(self):
        self.server.fault = (503, {"error": "full"})
        with self.assertRaisesRegex(NotConfirmed, "recover: ask http://.*: status 503: full"):
            self.alone().recover(0.2)

    def test_a_service_that_will_have_none_of_it(self):
        for status in (400, 401, 403, 404, 409):
            with self.subTest(status=status), contextlib.closing(self.alone()) as c:
                self.server.fault = (status, {"error": "no"})
                del self.server.messages[:]
                with self.assertRaisesRegex(Refused, f"status {status}: no"):
                    c.recover(20)
                self.assertEqual(2 if status == 409 else 1, len({m["life"] for _, m in self.server.messages}))

    def test_answers_that_are_none(self):
        for of in ([], {"version": 9}, {"version": 1}):
            with self.subTest(of=of), contextlib.closing(self.alone()) as c:
                self.server.fault = (200, of)
                with self.assertRaisesRegex(NotConfirmed, "recover: ask http://"):
                    c.recover(0.1)

    def test_a_late_message_of_an_older_life(self):
        """A service that forgot takes it for the newer, and refuses the living."""
        self.begin()
        self.save(10)
        with self.server.mutex:
            late = {**next(m for _, m in self.server.messages if m["domain"] == "rank 0"), "life": "00ff"}
            self.server.board = Board(2)
            for _, m in self.server.messages[-4:]:
                self.server.board.tell(m["domain"], m)
            self.server.board.tell("rank 0", late)
        with self.assertRaisesRegex(Refused, "status 409"):
            self.pair[0].commit(20, [self.part("step-20/0")], 20)
        self.assertEqual((10,), self.pair[0].held(), "nothing is lost by it")
        self.assertEqual([10, 10], [f.epoch for f in self.both(lambda i, c: c.recover(20))])
        out = []
        first = threading.Thread(target=lambda: out.append(self.pair[0].recover(20)))
        told = len(self.server.messages)
        first.start()
        while len(self.server.messages) < told + 2:
            time.sleep(0.01)
        with self.server.mutex:  # it comes while the domain recovers
            self.server.board = Board(2)
            self.server.board.tell("rank 0", self.server.messages[-1][1])
            self.server.board.tell("rank 0", {**late, "life": "00fe"})
        self.assertEqual(10, self.pair[1].recover(20).epoch)
        first.join()
        self.assertEqual([10], [f.epoch for f in out])

    def test_headers(self):
        self.server.board = Board(1)
        self.committer(domains=1, headers={"Authorization": "Bearer x"}).recover(20)
        self.assertEqual({"Bearer x"}, {h["Authorization"] for h, _ in self.server.messages})

    def test_token(self):
        file = self.folder / "token"
        file.write_text("first\n")
        environment = {"LOCKSTEP_COMMIT_TOKEN": "", "LOCKSTEP_COMMIT_TOKEN_FILE": str(file)}
        for name, env, kw, want in (
            ("none", {"LOCKSTEP_COMMIT_TOKEN_FILE": ""}, {}, None),
            ("argument", {"LOCKSTEP_COMMIT_TOKEN": "env"}, {"token": "given"}, "Bearer given"),
            ("environment", {"LOCKSTEP_COMMIT_TOKEN": "env"}, {}, "Bearer env"),
            ("file", {}, {}, "Bearer first"),
            ("header", {"LOCKSTEP_COMMIT_TOKEN": "env"}, {"headers": {"authorization": "Basic x"}}, "Basic x"),
        ):
            with self.subTest(name), unittest.mock.patch.dict(os.environ, {**environment, **env}):
                self.server.board, self.server.messages[:] = Board(1), []
                c = self.committer(domains=1, **kw)
                c.recover(20)
                c.close()
                got = {{k.lower(): v for k, v in h.items()}.get("authorization") for h, _ in self.server.messages}
                self.assertEqual({want}, got)

    def test_token_is_replaced(self):
        file = self.folder / "token"
        file.write_text("old and a remark\n")
        self.server.board, self.server.token = Board(1), "old"
        with unittest.mock.patch.dict(os.environ, {"LOCKSTEP_COMMIT_TOKEN_FILE": str(file)}):
            c = self.committer(domains=1)
        c.recover(20)
        self.server.token = "new"
        with self.assertRaisesRegex(Refused, "status 401: .missing.; set LOCKSTEP_COMMIT_TOKEN") as e:
            c.commit(10, [self.part()], 20)
        self.assertEqual(401, e.exception.status)
        file.write_text("new\n")
        c.commit(20, [self.part("step-20")], 20)
        self.assertEqual((20,), c.held())

    def test_wrong_tokens(self):
        empty = self.folder / "empty"
        empty.write_text(" \n")
        for kw, env, error, text in (
            ({"token": "two words"}, {}, ValueError, "commit: token: got 9 characters; want at most 8192, of ASCII without spaces"),
            ({"token": "x\r\nHost: y"}, {}, ValueError, "commit: token"),
            ({"token": 7}, {}, TypeError, "commit: token: got int; want text"),
            ({}, {"LOCKSTEP_COMMIT_TOKEN_FILE": str(empty)}, ValueError, "got an empty file .*; want a token in its first line"),
            ({}, {"LOCKSTEP_COMMIT_TOKEN_FILE": str(self.folder / "none")}, FileNotFoundError, "none"),
        ):
            with self.subTest(text), unittest.mock.patch.dict(os.environ, env), self.assertRaisesRegex(error, text):
                self.committer(domains=1, **kw)

    def test_answers_that_nest_or_are_long(self):
        service = Service(self.url, None, None)
        self.addCleanup(service.close)
        for data in (b"[" * (1 << 20), b'{"error": ' * 100_000, b'"' + b"x" * (1 << 20), b"9" * (1 << 20)):
            with self.subTest(data[:10]), self.assertRaises(Unreachable):
                service._answer(200, data)
            with self.subTest(data[:10]), self.assertRaises(Refused):
                service._answer(400, data[: 1 << 20])

    def test_wrong_calls(self):
        c = self.alone()
        with self.assertRaisesRegex(RuntimeError, "commit save 10: want recover.. first"):
            c.commit(10, [self.part()])
        c.recover(20)
        for epoch, paths, error, text in (
            ("10", [], TypeError, "commit: epoch: got '10'; want an integer"),
            (-1, [], ValueError, "commit: epoch: got -1"),
            (10, [self.folder / "nowhere"], FileNotFoundError, "nowhere"),
            (10, ["/etc/hostname"], ValueError, "want what is below"),
            (10, [self.folder], ValueError, "want what is below"),
            (10, [".lockstep-commit"], ValueError, "want what is below"),
            (10, ["../x"], ValueError, "want what is below"),
            (10, ["/dev/null"], ValueError, "want what is below"),
            (10, [], ValueError, "commit 0 paths: want 1 to 64"),
            (10, ["step-10"] * 65, ValueError, "commit 65 paths: want 1 to 64"),
        ):
            with self.subTest(epoch=epoch, paths=paths), self.assertRaisesRegex(error, text):
                c.commit(epoch, paths)
        for path in ("step-10", self.folder):
            with self.subTest(path=path), self.assertRaisesRegex(TypeError, "paths: got .*; want a list of paths"):
                c.commit(10, path)
        (self.folder / "empty").mkdir()
        with self.assertRaisesRegex(ValueError, "got no file; want what was saved"):
            c.commit(10, ["empty"])
        self.assertEqual((), c.held())
        c.commit(10, [self.part()])
        with self.assertRaisesRegex(ValueError, "commit save 10: want an epoch after 10, which is held"):
            c.commit(10, [self.part()])

    def test_wrong_arguments(self):
        for args, error, text in (
            (("job", "rank 0", 0, self.folder), ValueError, "commit: domains: got 0; want 1 to"),
            (("job", "rank 0", 131073, self.folder), ValueError, "commit: domains: got 131073; want 1 to 131072"),
            (("job", "rank 0", "2", self.folder), TypeError, "commit: domains: got '2'; want an integer"),
            ((7, "rank 0", 2, self.folder), TypeError, "commit: job: got int; want text"),
            (("job", "", 2, self.folder), ValueError, "commit: domain: got ''; want 1 to 64 bytes"),
            (("job", "x" * 65, 2, self.folder), ValueError, "commit: domain: got 'xxx"),
            (("job", "a\nb", 2, self.folder), ValueError, "without control characters"),
            (("job", "\udcff", 2, self.folder), ValueError, "want text"),
        ):
            with self.subTest(args=args), self.assertRaisesRegex(error, text):
                Committer(*args, url=self.url)
        for url in ("", "gateway:13181", "ftp://gateway", "http://", "http://x:y", "http://x:99999"):
            with self.subTest(url=url), self.assertRaisesRegex(ValueError, "commit: url: got"):
                Committer("job", "rank 0", 2, self.folder, url=url)

        for url in (5, b"http://x"):
            with self.subTest(url=url), self.assertRaisesRegex(TypeError, "commit: url: got .*; want text"):
                Committer("job", "rank 0", 2, self.folder, url=url)
        with self.assertRaisesRegex(TypeError, "commit: folder: got None; want a path"):
            Committer("job", "rank 0", 2, None, url=self.url)

    def test_wrong_arguments_of_calls(self):
        c = self.alone()
        c.recover(20)
        for paths in ([None], 5, None):
            with self.subTest(paths=paths), self.assertRaisesRegex(TypeError, "commit: paths: got (None|5); want a"):
                c.commit(10, paths)
        for timeout, error in (("5", TypeError), (None, TypeError), (True, TypeError), (float("nan"), ValueError)):
            with self.subTest(timeout=timeout):
                with self.assertRaisesRegex(error, "commit: timeout: got .*; want seconds"):
                    c.commit(10, [self.part()], timeout)
                with self.assertRaisesRegex(error, "recover: timeout: got .*; want seconds"):
                    c.recover(timeout)
        c.commit(10, [self.part("step-10")], float("inf"))
        c.commit(20, [self.part("step-20")], 10**400)
        self.assertEqual((20,), c.held())

    def test_the_whole_url_is_told(self):
        self.server.fault = (404, {"error": "not found"})
        self.url = self.url.replace("http://", "http://user:word@") + "/more/"
        with self.assertRaisesRegex(Refused, r"ask http://127[^@]*:\d+/more/v1/commit: status 404: not found"):
            self.alone().recover(20)

    def test_two_processes_are_not_one_domain(self):
        self.alone()
        with self.assertRaisesRegex(RuntimeError, "another process commits for this domain"):
            self.committer()


def no_locks():
    """Two nodes, or a file system without locks."""
    return unittest.mock.patch.object(records.fcntl, "flock", side_effect=lambda *_: None)


class OwnerTest(Case):
    def domain(self):
        c = self.alone()
        c.recover(20)
        c.commit(10, [self.part("step-10")], 20)
        return c

    def on_disk(self):
        with no_locks(), contextlib.closing(Record(self.folder, "job", "rank 0", 1)) as r:
            return [(s.epoch, s.state) for s in r.read()]

    def test_one_that_is_closed(self):
        old = self.domain()
        old.close()
        new = self.committer(domains=1)
        new.recover(20)
        new.commit(20, [self.part("step-20")], 20)
        for call in (lambda: old.commit(30, [self.part("step-30")], 20), lambda: old.recover(20), old.held):
            with self.assertRaisesRegex(RuntimeError, "the committer is closed"):
                call()
        self.assertEqual([(20, COMMITTED)], self.on_disk())
        old.close()
        new.commit(30, [self.part("step-30")], 20)

    def test_one_that_was_superseded(self):
        """The lock does not reach it; whether the service knows of it, or is away, or has forgotten."""
        for name, error, text in (("knows", Refused, "status 409"), ("away", RuntimeError, "got one of life"), ("forgot", RuntimeError, "got one of life")):
            with self.subTest(name), tempfile.TemporaryDirectory() as work, no_locks():
                self.folder, self.server.fault = pathlib.Path(work), None
                old = self.domain()
                new = self.committer(domains=1)
                new.recover(20)
                new.commit(20, [self.part("step-20")], 20)
                self.server.fault = (503, {"error": "away"}) if name == "away" else None
                if name == "forgot":
                    self.server.board = Board(1)
                for _ in range(2):
                    with self.assertRaisesRegex(error, text):
                        old.commit(30, [self.part("step-30")], 1)
                    error, text = RuntimeError, "want recover.. first" if name != "knows" else "status 409"
                with self.assertRaisesRegex(RuntimeError, "read commit record .*got one of life .*: another commits for this domain"):
                    old.recover(1)
                self.assertEqual([(20, COMMITTED)], self.on_disk())
                self.server.fault, self.server.board = None, Board(1)
                new.commit(30, [self.part("step-30")], 20)
                self.assertEqual([(30, COMMITTED)], self.on_disk())
                new.close()
                old.close()

    def test_one_that_begins_takes_the_record(self):
        with no_locks():
            old = self.domain()
            new = self.committer(domains=1)
            old.commit(20, [self.part("step-20")], 20)
            self.assertEqual(20, new.recover(20).epoch, "what was written until then")
            self.server.board = Board(1)
            with self.assertRaisesRegex(RuntimeError, "got one of life"):
                old.commit(30, [self.part("step-30")], 20)
            third = self.committer(domains=1)
            self.assertEqual(20, third.recover(20).epoch)
            self.server.board = Board(1)
            with self.assertRaisesRegex(RuntimeError, "got one of life"):
                new.commit(30, [self.part("step-30")], 20)
            self.assertEqual([(20, COMMITTED)], self.on_disk())

    def test_what_is_refused_is_not_written(self):
        c = self.domain()
        self.server.fault = (409, {"error": "no"})
        with self.assertRaises(Refused):
            c.commit(20, [self.part("step-20")], 20)
        self.assertEqual([(10, COMMITTED)], self.on_disk())
        self.assertEqual((10,), c.held())

    def forked(self, call):
        """Returns what a call comes to in a fork, or that it did not end."""
        ours, theirs = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(ours)
            signal.alarm(10)
            try:
                said = repr(call())
            except BaseException as e:
                said = repr(e)
            os.write(theirs, said.encode())
            os._exit(0)
        os.close(theirs)
        with open(ours) as f:
            said = f.read()
        os.waitpid(pid, 0)
        return said

    def test_a_fork_is_not_the_domain(self):
        c = self.domain()
        with c._mutex:  # as a thread has it that there is not in the fork
            for call in (lambda: c.commit(20, [self.part("step-20")], 20), lambda: c.recover(20), c.held):
                self.assertRegex(self.forked(call), r"RuntimeError\('.*: got process \d+; want \d+, which made the committer")
            self.assertEqual("None", self.forked(c.close))
            self.assertRegex(self.forked(lambda: c._record.write((), "aa")), "RuntimeError.*it is closed")
        self.assertEqual([(10, COMMITTED)], self.on_disk())
        with self.assertRaisesRegex(RuntimeError, "another process commits for this domain"):
            self.committer(domains=1)  # a fork that closed it did not unlock it
        c.commit(20, [self.part("step-20")], 20)
        self.assertEqual([(20, COMMITTED)], self.on_disk())

    def test_a_fork_does_not_hold_the_domain(self):
        for name, hook in (("hook", True), ("without", False)):
            with self.subTest(name):
                c = self.domain() if name == "hook" else self.committer(domains=1)
                c.recover(20)
                sock = c._service._connection.sock._sock
                with unittest.mock.patch.object(commit, "_open", commit._open if hook else ()):
                    ours, theirs = os.pipe()
                    pid = os.fork()
                    if pid == 0:
                        os.write(theirs, str(sock.fileno()).encode())
                        signal.pause()
                said = os.read(ours, 9)
                try:
                    self.assertEqual(hook, said == b"-1")
                    c.close()
                    with contextlib.closing(self.committer(domains=1)) as other:
                        other.recover(20)
                finally:
                    os.kill(pid, signal.SIGKILL)
                    os.waitpid(pid, 0)
                    os.close(ours)
                    os.close(theirs)

    def test_a_fork_does_not_hang_up(self):
        c = self.domain()
        connection = c._service._connection
        self.forked(c.close)
        with c._mutex, unittest.mock.patch.object(commit, "_open", ()):  # a fork that Python does not know of
            self.assertEqual("None", self.forked(c.close))
        c.commit(20, [self.part("step-20")], 20)
        self.assertIs(connection, c._service._connection)


class TimeTest(Case):
    def listen(self, answer=None):
        """Begins a service that says what it is given, slowly."""
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)
        self.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        heard = []

        def speak(connection):
            with contextlib.suppress(OSError), connection:
                connection.recv(1 << 16)
                for byte in answer or b"":
                    connection.sendall(bytes([byte]))
                    time.sleep(0.05)
                time.sleep(30)

        def run():
            with contextlib.suppress(OSError):
                while True:
                    heard.append(listener.accept()[0])
                    threading.Thread(target=speak, args=(heard[-1],), daemon=True).start()

        threading.Thread(target=run, daemon=True).start()

    @contextlib.contextmanager
    def within(self, seconds):
        began = time.monotonic()
        yield
        self.assertLess(time.monotonic() - began, seconds)

    def brief(self):
        """Has a call wait less for its last answer, where none comes."""
        return unittest.mock.patch.object(commit, "_GRACE", 0.2)

    def test_a_service_that_is_slow(self):
        for name, answer in (
            ("says nothing", b""), ("line by line", b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 99), ("the answer", b"HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n" + b" " * 999),
        ):
            with self.subTest(name), tempfile.TemporaryDirectory() as work:
                self.folder = pathlib.Path(work)
                self.listen(answer)
                with contextlib.closing(self.committer()) as c, self.brief(), self.within(5), self.assertRaisesRegex(NotConfirmed, "timed out"):
                    c.recover(0.2)

    def test_a_name_that_is_slow(self):
        with unittest.mock.patch.object(socket, "getaddrinfo", lambda *_, **__: time.sleep(9)):
            with self.brief(), self.within(5), self.assertRaisesRegex(NotConfirmed, "resolve 127.0.0.1: timed out"):
                self.committer().recover(0.2)

    def test_addresses_that_do_not_answer(self):
        listener = socket.create_server(("127.0.0.1", 0), backlog=0)
        self.addCleanup(listener.close)
        address = listener.getsockname()
        for _ in range(4):  # as many as nobody accepts
            full = socket.socket()
            self.addCleanup(full.close)
            full.setblocking(False)
            full.connect_ex(address)
        found = [(socket.AF_INET, socket.SOCK_STREAM, 0, "", address)] * 5
        with unittest.mock.patch.object(socket, "getaddrinfo", lambda *_, **__: found), self.within(4), self.assertRaises(socket.timeout):
            service._dial("many", 80, time.monotonic() + 1)
        found = found[:1] + [(socket.AF_INET, socket.SOCK_STREAM, 0, "", ("127.0.0.1", self.server.server_port))]
        with unittest.mock.patch.object(socket, "getaddrinfo", lambda *_, **__: found), self.within(6):
            service._dial("many", 80, time.monotonic() + 2).close()

    def test_another_call_takes_long(self):
        c = self.committer()
        other, out = self.calls(lambda: c.recover(60))
        while not c._turn.locked():
            time.sleep(0.01)
        with self.within(4), self.assertRaisesRegex(NotConfirmed, "commit save 10: another call has not ended in time; this one has done nothing"):
            c.commit(10, [self.part()], 0.2)
        with self.within(1):
            self.assertEqual((), c.held())
        self.assertTrue(other.is_alive(), "it is not disturbed")
        c.close()
        other.join()
        self.assertRegex(repr(out), "recover: the committer is closed")

    def test_a_disk_that_takes_long(self):
        c = self.alone()
        c.recover(20)
        settle = c._record.settle

        def slow(paths):
            time.sleep(1.5)
            return settle(paths)

        with unittest.mock.patch.object(c._record, "settle", slow):
            c.commit(10, [self.part()], 0.2)
        self.assertEqual((10,), c.held())

    @contextlib.contextmanager
    def slow_disk(self):
        """Has the part's data reach the disk when an event is set; yields it, and one of when that began."""
        began, go, real = threading.Event(), threading.Event(), os.fsync

        def fsync(fd):
            if os.readlink(f"/proc/self/fd/{fd}").endswith("/data"):
                began.set()
                go.wait(20)
            return real(fd)

        with unittest.mock.patch.object(os, "fsync", fsync), ends_soon():
            try:
                yield began, go
            finally:
                go.set()

    def calls(self, call):
        """Begins a call; returns its thread, and what comes of it."""
        out = []

        def run():
            try:
                out.append(call())
            except Exception as e:
                out.append(e)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        return thread, out

    def test_it_is_told_while_the_disk_takes_long(self):
        with unittest.mock.patch.object(commit, "_BEAT", 0.05), self.slow_disk() as (began, go):
            c = self.alone()
            c.recover(20)
            path, other = self.part(), self.part("step-20", "more")
            first, out = self.calls(lambda: c.commit(10, [path], 20))
            began.wait()
            told = len(self.server.messages)
            while len(self.server.messages) < told + 3:
                time.sleep(0.01)
            with self.within(4), self.assertRaisesRegex(NotConfirmed, "another call has not ended in time; this one has done nothing"):
                c.commit(20, [other], 0.2)
            second, later = self.calls(lambda: c.commit(20, [other], 20))
            time.sleep(0.3)
            self.assertEqual(([], []), (out, later))
            self.assertEqual((), c.held())
            go.set()
            first.join()
            second.join()
        self.assertEqual(([None], [None], (20,)), (out, later, c.held()))

    def test_a_heart_that_waits_is_cut_short(self):
        with unittest.mock.patch.object(commit, "_BEAT", 0.05), self.slow_disk() as (began, go):
            c = self.alone()
            c.recover(20)
            path = self.part()
            first, out = self.calls(lambda: c.commit(10, [path], 20))
            began.wait()
            with unittest.mock.patch.object(Handler, "delay", 3.5):
                told = len(self.server.messages)
                while len(self.server.messages) == told:
                    time.sleep(0.01)
            with self.within(2.5):
                go.set()
                first.join()
        self.assertEqual(([None], (10,)), (out, c.held()))

    def test_what_was_found_while_the_disk_took_long(self):
        c = self.alone()
        c.recover(20)
        settle = c._record.settle

        def slow(paths):
            c._domain.decided = False  # as the heart does where another process is the domain
            return settle(paths)

        with unittest.mock.patch.object(c._record, "settle", slow), self.assertRaisesRegex(RuntimeError, "commit save 10: want recover.. first"):
            c.commit(10, [self.part()], 20)
        self.assertEqual(((), ()), (c.held(), c._record.read()))

    def test_close_while_the_disk_takes_long(self):
        with self.slow_disk() as (began, go):
            c = self.alone()
            c.recover(20)
            path = self.part()
            first, out = self.calls(lambda: c.commit(10, [path], 20))
            began.wait()
            waits, other = self.calls(lambda: c.commit(20, [path], 20))
            with self.within(3):
                c.close()
                waits.join()
            with contextlib.closing(self.committer(domains=1)) as successor:
                go.set()
                first.join()
                self.assertEqual((), successor.held())
        for e in out + other:
            self.assertRegex(repr(e), r"RuntimeError\('commit.*: the committer is closed'\)")

    def waiting(self):
        """Yields committers of which a call has to wait, each for something else."""
        yield "others", self.committer()
        self.listen()
        yield "an answer", self.committer()
        listener = socket.create_server(("127.0.0.1", 0), backlog=0)
        self.addCleanup(listener.close)
        for _ in range(4):  # as many as nobody accepts
            full = socket.socket()
            self.addCleanup(full.close)
            full.setblocking(False)
            full.connect_ex(listener.getsockname())
        self.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        yield "a connection", self.committer()
        with unittest.mock.patch.object(socket, "getaddrinfo", lambda *_, **__: time.sleep(9)):
            yield "a name", self.committer()
        self.listen()
        self.url = self.url.replace("http", "https")
        yield "TLS", self.committer()

    def test_close_while_another_thread_waits(self):
        for name, c in self.waiting():
            with self.subTest(name), ends_soon():
                thread, out = self.calls(lambda: c.recover(60))
                time.sleep(0.5)
                with self.within(2.5):
                    c.close()
                    thread.join()
                self.assertRegex(repr(out), r"RuntimeError\('recover: the committer is closed'\)")
                self.assertFalse(c._record.open)

    def test_close_by_a_signal_handler(self):
        before = signal.signal(signal.SIGUSR1, lambda *_: c.close())
        self.addCleanup(signal.signal, signal.SIGUSR1, before)
        for name, c in self.waiting():
            timer = threading.Timer(0.5, signal.pthread_kill, (threading.get_ident(), signal.SIGUSR1))
            with self.subTest(name), ends_soon(), self.within(3), self.assertRaisesRegex(RuntimeError, "recover: the committer is closed"):
                timer.start()
                c.recover(60)
            self.assertFalse(c._record.open, "the call left the domain")

    def test_close_by_a_signal_handler_tells_what_is_written_down(self):
        self.server.board = Board(1)
        with self.assertRaises(SystemExit), ends_soon(), self.committer(domains=1) as c:
            c.recover(20)
            exchange = c._service.exchange

            def patched(message, limit):
                if message["slots"] and not c._closing:
                    signal.pthread_kill(threading.get_ident(), signal.SIGUSR1)
                    raise Unreachable("away")
                return exchange(message, limit)

            def handler(*_):
                c.close()
                raise SystemExit

            self.addCleanup(signal.signal, signal.SIGUSR1, signal.signal(signal.SIGUSR1, handler))
            c._service.exchange = patched
            c.commit(10, [self.part()], 20)
        self.assertEqual([TENTATIVE], self.told())
        self.assertFalse(c._record.open)

    def test_close_where_the_record_takes_long(self):
        c, go = self.alone(), threading.Event()
        self.addCleanup(go.set)
        write = c._record.write
        with unittest.mock.patch.object(c._record, "write", lambda *a: (go.wait(20), write(*a))), unittest.mock.patch.object(commit, "_BRIEF", 0.3):
            thread, out = self.calls(lambda: c.recover(20))
            while not c._turn.locked():
                time.sleep(0.01)
            time.sleep(0.1)
            with self.within(3):
                c.close()
            self.assertTrue(c._record.open, "not while it writes")
            go.set()
            thread.join()
        self.assertRegex(repr(out), "the committer is closed")
        self.assertFalse(c._record.open)

    def away(self, c, times):
        """Has the service be away as often as it is to hear of a save that is committed."""
        exchange, tries = c._service.exchange, []

        def patched(message, limit):
            if any(s["state"] == COMMITTED for s in message["slots"]):
                tries.append(limit)
                if len(tries) <= times:
                    raise Unreachable("away")
            return exchange(message, limit)

        c._service.exchange = patched
        return tries

    def told(self):
        return [s["state"] for _, m in self.server.messages for s in m["slots"]]

    def test_the_last_word(self):
        c = self.alone()
        c.recover(20)
        tries = self.away(c, 3)
        c.commit(10, [self.part()], 20)
        self.assertNotIn(COMMITTED, self.told())
        c.close()
        self.assertIn(COMMITTED, self.told())
        c.close()
        self.assertEqual(4, len(tries), "it is told once")

    def test_the_last_word_is_not_heard(self):
        c = self.alone()
        c.recover(20)
        tries = self.away(c, 999)
        c.commit(10, [self.part()], 20)
        with self.within(4), unittest.mock.patch.object(commit, "_BRIEF", 1.0):
            c.close()
        self.assertGreater(len(tries), 2)

    def test_a_connection_that_was_closed_meanwhile(self):
        c = self.alone()
        with unittest.mock.patch.object(Handler, "hangs_up", True):
            c.recover(20)
            for _ in range(3):
                self.assertIsNotNone(c._tell())

    def test_the_heart_goes_on(self):
        c = self.alone()
        beats = []

        def idle():
            beats.append(1)
            if len(beats) < 3:
                raise ValueError("it stumbles")

        c._heart = commit._Heart(idle)
        self.addCleanup(c._heart.stop)
        with unittest.mock.patch.object(commit, "_BEAT", 0.01), warnings.catch_warnings(record=True) as caught, ends_soon():
            warnings.simplefilter("always")
            c._heart.beat()
            while len(beats) < 5:
                time.sleep(0.01)
        self.assertEqual(["commit: it stumbles; it is tried again"], [str(w.message) for w in caught])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            commit._warn("nobody catches this")

    @unittest.skipUnless(shutil.which("openssl"), "needs openssl to make a certificate")
    def test_https(self):
        key, certificate = self.folder / "key", self.folder / "certificate"
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost",
             "-keyout", key, "-out", certificate], check=True, capture_output=True,
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.url = f"https://localhost:{self.server.server_port}"
        with contextlib.closing(self.alone()) as c, self.within(6), self.assertRaisesRegex(NotConfirmed, "certificate verify failed"):
            c.recover(0.5)
        self.server.board = Board(1)
        c = self.committer(domains=1, context=ssl.create_default_context(cafile=str(certificate)))
        self.assertIsNone(c.recover(20).epoch)
        c.commit(10, [self.part()], 20)


class RecordTest(unittest.TestCase):
    def setUp(self):
        work = tempfile.TemporaryDirectory(prefix="lockstep-")
        self.addCleanup(work.cleanup)
        self.folder = work.name

    def record(self, domain="rank 0", domains=2):
        r = Record(self.folder, "job", domain, domains)
        self.addCleanup(r.close)
        r.read()
        return r

    slots = (Slot(1, "aa", COMMITTED, (Part("step-1", 2, 30),)), Slot(2, "bb", TENTATIVE))

    def test_a_folder_that_is_not_there(self):
        with self.assertRaisesRegex(FileNotFoundError, "open folder .*nowhere: got none; want one that is there"):
            Record(os.path.join(self.folder, "nowhere"), "job", "rank 0", 2)

    def test_folders_that_cannot_be_synced(self):
        r = self.record()
        real = os.fsync

        def fsync(error):
            def f(fd):
                if os.path.isdir(f"/proc/self/fd/{fd}"):
                    raise OSError(error, os.strerror(error))
                return real(fd)

            return f

        with unittest.mock.patch.object(os, "fsync", fsync(errno.EINVAL)), self.assertWarnsRegex(RuntimeWarning, "sync folder .*; names in it may be lost"):
            r.write(self.slots, "aa")
        self.assertEqual(self.slots, r.read())
        with unittest.mock.patch.object(os, "fsync", fsync(errno.EIO)), self.assertRaises(OSError):
            r.write(self.slots, "aa")

    def test_reads_what_it_wrote(self):
        r = self.record("a/b é")
        self.assertEqual((), r.read())
        r.write(self.slots, "aa")
        self.assertEqual(self.slots, r.read())
        self.assertEqual(pathlib.Path(self.folder, ".lockstep-commit"), pathlib.Path(r.path).parent)

    def test_the_order_in_which_it_reaches_the_disk(self):
        r = self.record()
        done = []

        def note(name, f):
            def g(*args):
                done.append((name, *(os.path.basename(os.readlink(f"/proc/self/fd/{a}") if isinstance(a, int) else a) for a in args)))
                return f(*args)

            return g

        with unittest.mock.patch.object(os, "fsync", note("fsync", os.fsync)), unittest.mock.patch.object(os, "replace", note("replace", os.replace)):
            r.write(self.slots, "aa")
            self.assertEqual([("fsync", "rank%200.json.new".replace("%20", " ")), ("replace", "rank 0.json.new", "rank 0.json"), ("fsync", ".lockstep-commit")], done)
            del done[:]
            os.makedirs(os.path.join(self.folder, "step-1", "deep"))
            pathlib.Path(self.folder, "step-1", "deep", "data").write_text("x")
            self.assertEqual((Part("step-1/deep", 1, 1),), r.settle(["step-1/deep"]))
            self.assertEqual([("fsync", n) for n in ("data", "deep", "step-1", os.path.basename(self.folder))], done)

    def test_records_that_are_not_right(self):
        r = self.record()
        r.write(self.slots, "aa")
        whole = pathlib.Path(r.path).read_bytes()
        text = whole.split(b"\n")[0]

        def signed(old, new):
            changed = text.replace(old, new)
            assert changed != text
            return changed + b"\n" + records.hashlib.sha256(changed).hexdigest().encode() + b"\n"

        for name, data in {
            "got checksum": whole.replace(b'"epoch": 1', b'"epoch": 3'),
            "got checksum ": b"",
            "got checksum  ": whole[:40],
            "got checksum b'.x00": b"\0" * len(whole),
            "got more than 1048576 bytes": b" " * (1 << 21),
            "got domains 3; want 2": signed(b'"domains": 2', b'"domains": 3'),
            "got job 'bob'; want 'job'": signed(b'"job": "job"', b'"job": "bob"'),
            "got version 2; want 1": signed(b'"version": 1', b'"version": 2'),
            "want at most 8, ascending": signed(b'"epoch": 1', b'"epoch": 2'),
            "want an epoch, an attempt and a state": signed(b'"committed"', b'"whole"'),
            "want path, files and bytes": signed(b'"files": 2', b'"files": "2"'),
        }.items():
            with self.subTest(name):
                pathlib.Path(r.path).write_bytes(data)
                with self.assertRaisesRegex(ValueError, "read commit record .*rank 0.json: .*" + name.strip()):
                    r.read()

    def test_who_does_not_own_it_writes_nothing(self):
        with no_locks():
            old = self.record()
            old.write(self.slots, "aa")
            new = self.record()
            old.write(self.slots[:1], "aa")
            with self.assertRaisesRegex(RuntimeError, "write commit record .*got one of life 'aa'; want what this process wrote or read last"):
                new.write((), "bb")
            self.assertEqual(self.slots[:1], new.read(), "it had written nothing yet")
            new.write(self.slots, "bb")
            for call in (lambda: old.write((), "aa"), old.read):
                with self.assertRaisesRegex(RuntimeError, "commit record .*got one of life 'bb'; .*: another commits for this domain"):
                    call()
            self.assertEqual(self.slots, new.read())
            os.unlink(new.path)
            with self.assertRaisesRegex(RuntimeError, "got none; want"):
                new.write((), "bb")
            self.assertFalse(os.path.exists(new.path))

    def test_one_that_is_closed(self):
        r = self.record()
        r.close()
        with self.assertRaisesRegex(RuntimeError, "write commit record .*: it is closed"):
            r.write(self.slots, "aa")
        self.assertFalse(os.path.exists(r.path))

    def test_writes_that_fail(self):
        """What is on the disk then is the old or the new, and its own."""
        r = self.record()
        r.write(self.slots[:1], "aa")
        for name, function in (("replace", "replace"), ("the folder", "fsync")):
            real, calls = getattr(os, function), []

            def fails(*args):
                calls.append(args)
                if function == "replace" or len(calls) == 2:
                    raise OSError(errno.EIO, "broken")
                return real(*args)

            for _ in range(3):
                del calls[:]
                with self.subTest(name), unittest.mock.patch.object(os, function, fails), self.assertRaisesRegex(OSError, "broken"):
                    r.write(self.slots, "aa")
            r.write(self.slots[:1], "aa")
            self.assertEqual(self.slots[:1], r.read())

    def test_one_without_a_life(self):
        with contextlib.closing(self.record()) as r:
            r.write(self.slots, "aa")
            text = pathlib.Path(r.path).read_bytes().split(b"\n")[0].replace(b'"life": "aa", ', b"")
            self.assertNotIn(b"life", text)
            pathlib.Path(r.path).write_bytes(text + b"\n" + records.hashlib.sha256(text).hexdigest().encode() + b"\n")
        r = self.record()
        self.assertEqual(self.slots, r.read())
        r.write(self.slots, "bb")

    def test_one_that_nests_too_deeply(self):
        text = b"[" * 500_000
        with contextlib.closing(self.record()) as r:
            r.write(self.slots, "aa")
            pathlib.Path(r.path).write_bytes(text + b"\n" + records.hashlib.sha256(text).hexdigest().encode() + b"\n")
            with self.assertRaisesRegex(RuntimeError, "got another; want what this process wrote"):
                r.write(self.slots, "aa")
        with self.assertRaisesRegex(ValueError, "got what nests too deeply; want an object of slots"):
            self.record()

    def test_who_holds_nothing_may_become_another(self):
        with contextlib.closing(self.record()) as r:
            r.write((), "aa")
        with contextlib.closing(self.record(domains=3)) as r:
            self.assertEqual((), r.read())
            r.write(self.slots, "bb")
        with self.assertRaisesRegex(ValueError, "got domains 3; want 2"):
            self.record()

    def test_what_is_there(self):
        r = self.record()
        slot = Slot(1, "aa", COMMITTED, (Part("step-1", 2, 3),))
        self.assertIn("step-1: ", r.there(slot))
        os.mkdir(os.path.join(self.folder, "step-1"))
        for name, text in (("a", "1"), ("b", "23")):
            pathlib.Path(self.folder, "step-1", name).write_text(text)
        self.assertEqual("", r.there(slot))
        pathlib.Path(self.folder, "step-1", "c").write_text("another rank's")
        self.assertEqual("", r.there(slot))
        pathlib.Path(self.folder, "step-1", "b").unlink()
        pathlib.Path(self.folder, "step-1", "c").unlink()
        self.assertEqual("step-1: got 1 files with 1 bytes; want 2 with 3", r.there(slot))

    def test_paths_with_detours(self):
        deep = pathlib.Path(self.folder, "run", "step-1")
        deep.mkdir(parents=True)
        (deep / "data").write_text("x")
        above, name = os.path.split(self.folder)
        for folder in (self.folder, f"{above}//{name}", f"{above}/./{name}/", f"{self.folder}/run/..", os.path.relpath(self.folder)):
            with contextlib.closing(Record(folder, "job", "rank 0", 2)) as r:
                for path in (
                    deep, "run/step-1", "run//step-1", "run/step-1/", "./run/./step-1", "run/../run/step-1", f"{above}//{name}/run/step-1",
                    f"{os.path.abspath(folder)}//run/step-1/", f"{self.folder}/run/../run/step-1",
                ):
                    with self.subTest(folder=folder, path=path), ends_soon():
                        self.assertEqual((Part("run/step-1", 1, 1),), r.settle([os.fspath(path)]))

    def test_a_detour_by_a_link(self):
        """What is beside a link is not what is beside that to which it leads."""
        r = self.record()
        os.makedirs(os.path.join(self.folder, "a", "b"))
        for name in ("a", "."):
            pathlib.Path(self.folder, name, "data").write_text("x")
        os.symlink("a/b", os.path.join(self.folder, "link"))
        for path in ("link/../data", "link", "link/deep"):
            with self.subTest(path), self.assertRaisesRegex(ValueError, "got a link, to .*; want none at or above what was saved"):
                r.settle([path])

    def test_the_folder_by_a_link(self):
        with tempfile.TemporaryDirectory() as other:
            link = os.path.join(other, "link")
            os.symlink(self.folder, link)
            pathlib.Path(self.folder, "data").write_text("x")
            with contextlib.closing(Record(link, "job", "rank 0", 2)) as r:
                self.assertEqual((Part("data", 1, 1),), r.settle([link + "/data"]))

    def test_the_name_of_the_folder_reaches_the_disk(self):
        synced = []

        def fsync(fd):
            synced.append(os.readlink(f"/proc/self/fd/{fd}"))

        with unittest.mock.patch.object(os, "fsync", fsync):
            self.record()
        self.assertEqual([os.path.realpath(self.folder), os.path.dirname(os.path.realpath(self.folder))], synced)

    def test_what_is_neither_file_nor_folder_in_a_part(self):
        r = self.record()
        os.makedirs(os.path.join(self.folder, "part", "deep"))
        for name in ("data", "other"):
            pathlib.Path(self.folder, "part", name).write_text("x")
        slot = Slot(1, "aa", COMMITTED, r.settle(["part"]))
        for name, make in (
            ("file", lambda path: os.symlink("../other", path)), ("folder", lambda path: os.symlink("/etc", path)), ("pipe", os.mkfifo),
        ):
            path = os.path.join(self.folder, "part", "deep", name)
            make(path)
            with self.subTest(name), self.assertRaisesRegex(ValueError, f"got .*part/deep/{name}, neither a file nor a folder; want nothing else below"):
                r.settle(["part"])
            self.assertEqual("", r.there(slot), "what was put beside later does no harm")
            os.unlink(path)

    def test_neither_files_nor_folders(self):
        os.mkfifo(os.path.join(self.folder, "pipe"))
        with self.assertRaisesRegex(ValueError, "got .*pipe, neither a file nor a folder; want one"):
            self.record().settle(["pipe"])

    def test_records_that_are_no_regular_files(self):
        """A pipe would be waited for for ever, as it is opened."""
        for suffix in ("", ".lock", ".new"):
            for name, make in (("pipe", os.mkfifo), ("folder", os.mkdir), ("link to a pipe", self.link_to_a_pipe)):
                with self.subTest(name, suffix=suffix), tempfile.TemporaryDirectory() as self.folder, ends_soon():
                    r = self.record()
                    r.close()
                    path = r.path + suffix
                    with contextlib.suppress(FileNotFoundError):
                        os.unlink(path)
                    make(path)
                    with self.assertRaises(ValueError) as raised:
                        self.record().write(self.slots, "aa")
                    self.assertIn(f"open {path}: got no regular file; want one", str(raised.exception))

    def link_to_a_pipe(self, path):
        os.mkfifo(os.path.join(self.folder, "pipe"))
        os.symlink(os.path.join(self.folder, "pipe"), path)
