"""Committers with a service of their own; commit_test.go has the real one, and processes that are killed."""

import contextlib
import errno
import http.server
import json
import os
import pathlib
import shutil
import signal
import tempfile
import threading
import unittest
import unittest.mock
import warnings

from lockstep_scope import commit, records
from lockstep_scope.bilateral import COMMITTED, TENTATIVE, Part, Slot
from lockstep_scope.commit import Committer, Lost, NotConfirmed, Restarted
from lockstep_scope.records import Record
from lockstep_scope.service import Refused

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

    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        server = self.server
        with server.mutex:
            server.messages.append((dict(self.headers), message))
            a = server.board.tell(message["domain"], message)
        status, of = 200, {"error": "it is over"}
        if server.fault:
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
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args):
        pass


class Case(unittest.TestCase):
    def setUp(self):
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.mutex, self.server.messages, self.server.fault = threading.Lock(), [], None
        self.server.board = Board(2)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))
        thread.start()
        self.addCleanup(lambda: (self.server.shutdown(), thread.join(), self.server.server_close()))
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
                with self.assertRaisesRegex(Refused, f"status {status}: no"):
                    c.recover(20)

    def test_answers_that_are_none(self):
        for of in ([], {"version": 9}, {"version": 1}):
            with self.subTest(of=of), contextlib.closing(self.alone()) as c:
                self.server.fault = (200, of)
                with self.assertRaisesRegex(NotConfirmed, "recover: ask http://"):
                    c.recover(0.1)

    def test_headers(self):
        self.server.board = Board(1)
        self.committer(domains=1, headers={"Authorization": "Bearer x"}).recover(20)
        self.assertEqual({"Bearer x"}, {h["Authorization"] for h, _ in self.server.messages})

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

    def test_two_processes_are_not_one_domain(self):
        self.alone()
        with self.assertRaisesRegex(RuntimeError, "another process commits for this domain"):
            self.committer()


def no_locks():
    """Two nodes, or a file system without locks."""
    return unittest.mock.patch.object(records.fcntl, "flock", side_effect=lambda *_: None)


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
