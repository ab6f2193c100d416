# SPDX-License-Identifier: Apache-2.0

"""The rule, in every order that chance finds: with messages lost and late, and crashes at any point."""

import copy
import random
import unittest
from dataclasses import replace

from lockstep_scope.bilateral import COMMITTED, REFLECTING, STATES, TENTATIVE, Answer, Domain, Save, Slot

from .helper import size


class Board:
    """What the service does, without its limits; internal/epoch/bilateral is the real one."""

    def __init__(self, domains):
        self.domains, self.told, self.former = domains, {}, set()

    def tell(self, name, message):
        last = self.told.get(name)
        if (name, message["life"]) in self.former:
            return None
        if last and last["life"] != message["life"]:
            self.former.add((name, last["life"]))
        if not last or last["life"] != message["life"] or last["sequence"] < message["sequence"]:
            self.told[name] = message
        return self.answer(message)

    def answer(self, message):
        heard = self.told.values()
        session = "+".join(sorted(m["life"] for m in heard)) if len(heard) == self.domains else ""
        joined = sum(1 for m in heard if session and m["session"] == session)
        counts = {}
        for m in heard:
            for s in m["slots"]:
                n = counts.setdefault((s["epoch"], s["attempt"]), [0, 0, 0])
                for i in range(STATES.index(s["state"]) + 1):
                    n[i] += 1
        recoverable = lost = None
        if joined == self.domains:
            recoverable = max((a for a, n in counts.items() if n[0] == self.domains), default=None)
            lost = max((a for a, n in counts.items() if n[1] and n[0] < self.domains), default=None)
            if lost and recoverable and lost[0] <= recoverable[0]:
                lost = None
        saves = {(s["epoch"], s["attempt"]): counts.get((s["epoch"], s["attempt"]), [0, 0, 0]) for s in message["slots"]}
        return Answer(self.domains, session, joined, recoverable, lost, {k: Save(*n) for k, n in saves.items()}, heard=len(heard))


class Process:
    """One domain's process: it recovers, and then saves again and again. Its disk outlives it."""

    def __init__(self, name, world):
        self.name, self.world, self.disk = name, world, ()
        self.disks = []  # those that it had, of which there may be a copy
        self.removed = set()  # attempts of which the part is not there any more
        self.start()

    def start(self):
        self.domain = Domain(self.world.n, self.disk)
        self.recover()

    def recover(self):
        self.domain.begin()
        self.domain.wrote(tuple(replace(s, gone=(s.epoch, s.attempt) in self.removed) for s in self.disk))
        self.saving, self.recovered = None, False
        self.met = {}  # sessions that this life told of
        self.mail = []  # answers that are on their way

    def write(self, slots):
        self.disks.append(self.disk)
        self.disk = slots
        self.world.check()
        self.domain.wrote(slots)

    def tell(self):
        message = self.domain.message()
        self.met.setdefault(message["life"], set()).add(message["session"])
        for _ in range(self.world.random.choice((1, 1, 1, 2)) if self.world.losses else 1):
            delivery = self.world.random.choice(("lost", "late", "now", "now", "now"))
            if delivery == "late":
                self.world.late.append((self.name, message))
            elif delivery == "now":
                answer = self.world.board.tell(self.name, message)
                if answer is not None:
                    self.mail.append(answer)

    def hear(self):
        """Takes the answer to what was told last; a call takes no other."""
        if not self.mail:
            return
        answer, self.mail = self.mail[-1], []
        d = self.domain
        if d.decided and d.restarted(answer):
            if self.recovered:
                if self.world.random.random() < 0.1:
                    self.recover()
                return
            d.decided = False  # the same call, and life, goes on
        if not d.decided:
            if d.join(answer):
                self.world.decided(self, answer)
                self.write(d.decide(answer))
                d.decided = True
                self.saving = answer.recoverable[0] if answer.recoverable else None
            self.recovered = d.decided and (self.saving is None or d.state(self.saving) == COMMITTED)
            return
        slots = d.advance(answer)
        if slots is not None:
            self.write(slots)
            if self.saving is not None and d.state(self.saving) == COMMITTED:
                self.recovered = True
                self.world.committed(self, self.saving)

    def step(self):
        d = self.domain
        idle = d.decided and (self.saving is None or d.state(self.saving) == COMMITTED)
        if idle and self.world.may_save(self):
            self.saving = self.world.epoch_after(self)
            self.write(d.save(self.saving))
        elif self.world.random.random() < 0.5:
            self.tell()
        else:
            self.hear()

    def holds(self, attempt):
        return any((s.epoch, s.attempt) == attempt and attempt not in self.removed for s in self.disk)


class World:
    """losses: None; "disk", one domain's is replaced by an older copy now and then; "parts", files are
    removed. Then the service repeats and holds back more, and is replaced by older ones of it."""

    def __init__(self, seed, n=3, losses=None):
        self.random, self.n, self.losses = random.Random(seed), n, losses
        self.board, self.boards, self.late = Board(n), [], []
        self.confirmed = 0  # the greatest epoch of which anybody knows that all confirm it
        self.decisions = {}  # by session
        self.done = self.lost = 0
        self.processes = []
        self.processes = [Process(i, self) for i in range(n)]

    def recoverable(self):
        held = [{(s.epoch, s.attempt) for s in p.disk} for p in self.processes]
        return set.intersection(*held)

    def check(self):
        """At every instant one save can be recovered, and where one has committed it, that or a newer."""
        if len(self.processes) < self.n or self.losses:
            return
        newest = max((e for e, _ in self.recoverable()), default=0)
        assert newest >= self.confirmed, f"{newest} can be recovered; {self.confirmed} was confirmed"
        for p in self.processes:
            for s in p.disk:
                if s.state == COMMITTED:
                    assert newest >= s.epoch, f"{p.name} has committed {s.epoch}; {newest} can be recovered"
                    for o in self.processes:
                        knows = any(h.epoch > s.epoch or h == s or h.attempt == s.attempt and h.state == REFLECTING for h in o.disk)
                        assert knows, f"{p.name} has committed {s.epoch}; {o.name} does not know that all hold it"
                if s.state == REFLECTING:
                    assert (s.epoch, s.attempt) in self.recoverable() or newest > s.epoch

    def decided(self, process, answer):
        domain, recoverable = process.domain, answer.recoverable
        assert self.decisions.setdefault(domain.session, recoverable) == recoverable, "all load the same save"
        epoch = recoverable[0] if recoverable else 0
        if domain.lost(answer) is not None:
            assert self.losses, "all that was confirmed is there"
            self.lost += 1
            self.confirmed = min(self.confirmed, epoch)  # a person says that this is to be so
        assert epoch >= self.confirmed, f"{epoch} is taken without a word; {self.confirmed} was confirmed"
        met = process.met[domain.life]
        for o in self.processes if recoverable else ():
            known = any(o.domain.life in session for session in met)
            assert not known or o.holds(recoverable), f"{process.name} takes {recoverable}, and has met {o.name}, who has it not"

    def committed(self, process, epoch):
        if epoch > self.confirmed:
            self.confirmed, self.done = epoch, self.done + 1

    def may_save(self, process):
        """A job computes the next save together: nobody is two saves ahead."""
        sessions = {p.domain.session for p in self.processes if p.domain.decided}
        return len(sessions) == 1 and all(p.domain.decided for p in self.processes) and process.domain.session in self.decisions

    def epoch_after(self, process):
        return (process.domain.epochs() or [0])[-1] + 10

    def crash(self):
        """One dies, or the service; or all do, as when one dies in a collective."""
        what = self.random.choice(("one", "all", "all", "board", "stale") + (("lose", "older", "older", "stale", "stale") if self.losses else ()))
        if what == "board":
            self.board = Board(self.n)
        elif what == "older":
            self.boards.append(copy.deepcopy(self.board))
            self.board = copy.deepcopy(self.random.choice(self.boards))
        elif what == "stale":
            if self.late:
                at = self.random.randrange(len(self.late))
                name, message = self.late[at] if self.losses else self.late.pop(at)
                self.board.tell(name, message)
        elif what == "lose":
            self.lose()
        else:
            for p in self.processes:
                if what == "all" or p.name == self.random.randrange(self.n):
                    p.start()

    def lose(self):
        if self.losses == "disk":
            p = self.processes[0]
            if p.disks:
                p.disk = self.random.choice(p.disks[-8:])
            p.start()
            return
        held = sorted({(s.epoch, s.attempt) for p in self.processes for s in p.disk})
        if held:
            attempt, some = self.random.choice(held), self.random.choice((0.5, 1))
            for p in self.processes:
                if self.random.random() < some:
                    p.removed.add(attempt)
                p.start()

    def run(self, steps):
        for _ in range(steps):
            if self.random.random() < (0.03 if self.losses else 0.01):
                self.crash()
            self.random.choice(self.processes).step()


def answer(n=2, **kw):
    return Answer(**{"domains": n, "session": "s", "joined": n, "recoverable": None, "lost": None, "saves": {}, **kw})


class RuleTest(unittest.TestCase):
    def test_what_not_all_hold_is_let_go(self):
        slots = tuple(Slot(e, "a", TENTATIVE) for e in (10, 20, 30))
        self.assertEqual(slots[:2], Domain(2, slots).decide(answer(recoverable=(20, "a"))))
        self.assertEqual((), Domain(2, slots).decide(answer()))

    def test_one_step_at_a_time(self):
        d = Domain(2, (Slot(10, "a", COMMITTED), Slot(20, "b", TENTATIVE)))
        self.assertIsNone(d.advance(answer(saves={(20, "b"): Save(1, 0, 0)})))
        self.assertIsNone(d.advance(answer(saves={(20, "c"): Save(2, 2, 2)})), "another attempt")
        self.assertIsNone(d.advance(answer(n=3, saves={(20, "b"): Save(2, 2, 2)})), "another job")
        d.wrote(d.advance(answer(saves={(20, "b"): Save(2, 2, 2)})))
        self.assertEqual(["committed", "reflecting"], [s.state for s in d.slots])
        d.wrote(d.advance(answer(saves={(20, "b"): Save(2, 2, 2)})))
        self.assertEqual((Slot(20, "b", COMMITTED),), d.slots)

    def test_a_session_is_told_of_before_it_counts(self):
        d = Domain(2)
        self.assertFalse(d.join(answer(session="", joined=0)))
        self.assertFalse(d.join(answer(joined=2)), "not told yet")
        self.assertFalse(d.join(answer(joined=1)))
        self.assertTrue(d.join(answer(joined=2)))
        self.assertFalse(d.join(answer(session="t", joined=2)), "another")
        self.assertFalse(d.join(answer(session="t", joined=2, n=3)), "another job")

    def test_a_session_that_was_left_is_not_joined_again(self):
        d = Domain(2)
        d.join(answer(session="s"))
        d.join(answer(session="t"))
        life = d.life
        self.assertFalse(d.join(answer(session="s")))
        self.assertNotEqual(life, d.life, "which makes a session of which it is")
        self.assertEqual(("", 1), (d.session, d.message()["sequence"]))
        self.assertFalse(d.join(answer(session="u")))
        self.assertTrue(d.join(answer(session="u")))

    def test_what_was_told_with_a_session_that_was_left_decides_nothing(self):
        """The service is begun anew, and hears first what a life said that is over."""
        ten, twenty = Slot(10, "a", COMMITTED), Slot(20, "a", TENTATIVE)
        board = Board(2)
        x, y = Domain(2, (ten, twenty)), Domain(2, (ten, twenty))

        def tell(name, domain):
            return board.tell(name, domain.message())

        tell("x", x)
        y.join(tell("y", y))
        late = y.message()
        board.tell("y", late)
        x.join(tell("x", x))
        tell("x", x)
        y = Domain(2, (ten,))  # its disk is another
        y.join(tell("y", y))
        tell("y", y)
        x.join(tell("x", x))
        tell("x", x)
        self.assertEqual((10, "a"), tell("y", y).recoverable)
        board = Board(2)
        board.tell("y", late)
        for _ in range(9):
            heard = tell("x", x)
            if x.join(heard):
                self.fail(f"takes {heard.recoverable}")
        for _ in range(9):
            for name, d in (("x", x), ("y", y)):
                heard = tell(name, d)
                if d.join(heard):
                    self.assertEqual((10, "a"), heard.recoverable)
                    return
        self.fail("they do not meet")

    def test_sessions_that_were_left_are_bounded(self):
        d = Domain(1)
        lives = set()
        for i in range(1000):
            d.join(answer(n=1, session=str(i)))
            lives.add(d.life)
            self.assertLessEqual(len(d.left), 104)
        self.assertEqual(10, len(lives))

    def test_what_is_lost(self):
        ten, twenty = Slot(10, "a", COMMITTED), Slot(20, "a", REFLECTING)
        for gone, told, held, want in (
            ((), None, None, None),
            ((), (30, "b"), (10, "a"), (30, "b")),
            ((ten,), None, None, (10, "a")),
            ((ten, twenty), None, None, (20, "a")),
            ((ten, twenty), (10, "a"), None, (20, "a")),
            ((ten,), (30, "b"), (10, "b"), (30, "b")),
            ((ten,), None, (20, "a"), None),
            ((twenty,), None, (10, "a"), (20, "a")),
            ((Slot(20, "a", TENTATIVE),), None, (10, "a"), None),
        ):
            with self.subTest(gone=gone, told=told, held=held):
                d = Domain(2, tuple(replace(s, gone=True) for s in gone))
                self.assertEqual([], d.message()["slots"])
                self.assertEqual(want, d.lost(answer(lost=told, recoverable=held)))

    def test_what_is_lost_is_known_until_a_newer_save_is_committed(self):
        d = Domain(2, (Slot(10, "a", COMMITTED, gone=True), Slot(20, "a", TENTATIVE)))
        for state, held in ((TENTATIVE, [10, 20]), (REFLECTING, [10, 20]), (COMMITTED, [20])):
            d.wrote(d.decide(answer(recoverable=(20, "a"))) if state == TENTATIVE else d.advance(answer(saves={(20, "a"): Save(2, 2, 0)})))
            self.assertEqual((held, state), (d.epochs(), d.state(20)))

    def test_answers_that_are_none(self):
        right = {"version": 1, "domains": 2, "heard": 1, "session": "", "joined": 0, "recoverable": None, "lost": None, "saves": []}
        self.assertEqual(answer(session="", joined=0, heard=1), Answer.parse(right))
        for bad in (
            None, [], {}, "x", {**right, "version": 2}, {**right, "domains": "2"}, {**right, "session": None}, {**right, "joined": True},
            {**right, "recoverable": {"epoch": 1}}, {**right, "saves": None}, {**right, "saves": [{}]}, {**right, "lost": {"epoch": -1, "attempt": "a"}},
            {**right, "saves": [{"epoch": 1, "attempt": "a", "tentative": 1, "reflecting": 1, "committed": 2**64}]}, {**right, "missing": [1]},
        ):
            with self.subTest(bad=bad), self.assertRaises(ValueError):
                Answer.parse(bad)

    def test_any_order(self):
        self.runs(size(300, 3000))

    def test_any_order_with_losses(self):
        for losses in ("disk", "parts"):
            self.runs(size(150, 1500), losses)

    def runs(self, runs, losses=None):
        done = lost = 0
        for seed in range(runs):
            with self.subTest(seed=seed, losses=losses):
                world = World(seed, 2 + seed % 2 if losses else 3, losses)
                world.run(400)
                done, lost = done + world.done, lost + world.lost
        print(f"{done} saves were committed in {runs} runs, and {lost} times something was found to be lost")
        self.assertGreater(done, runs)
        self.assertEqual(bool(losses), lost > runs // 10)
