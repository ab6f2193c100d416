"""The rule, in every order that chance finds: with messages lost and late, and crashes at any point."""

import random
import unittest

from lockstep_scope.bilateral import COMMITTED, REFLECTING, STATES, TENTATIVE, Answer, Domain, Save, Slot


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
        self.start()

    def start(self):
        self.domain = Domain(self.world.n, self.disk)
        self.saving = None
        self.mail = []  # answers that are on their way

    def write(self, slots):
        self.disk = slots
        self.world.check()
        self.domain.wrote(slots)

    def tell(self):
        message = self.domain.message()
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
        if not d.decided:
            if not d.join(answer):
                return
            assert answer.lost is None, "all that was confirmed is there"
            if self.saving is None or self.saving not in d.epochs():
                self.saving = None
            self.world.decided(self, answer.recoverable)
            self.write(d.decide(answer))
            d.decided = True
            self.saving = answer.recoverable[0] if answer.recoverable else None
            return
        if d.restarted(answer):
            return
        slots = d.advance(answer)
        if slots is not None:
            self.write(slots)
            if self.saving is not None and d.state(self.saving) == COMMITTED:
                self.world.committed(self, self.saving)

    def step(self):
        d = self.domain
        idle = d.decided and (self.saving is None or d.state(self.saving) == COMMITTED)
        if idle and self.world.may_save(self):
            self.saving = self.world.epoch_after(self)
            self.write(d.save(self.saving))
            self.world.parts[self.name].setdefault(self.saving, set()).add(d.session)
        elif self.world.random.random() < 0.5:
            self.tell()
        else:
            self.hear()


class World:
    def __init__(self, seed, n=3):
        self.random, self.n = random.Random(seed), n
        self.board, self.late = Board(n), []
        self.parts = {i: {} for i in range(n)}
        self.confirmed = 0  # the greatest epoch of which anybody knows that all confirm it
        self.decisions = {}  # by session
        self.done = 0
        self.processes = []
        self.processes = [Process(i, self) for i in range(n)]

    def recoverable(self):
        held = [{(s.epoch, s.attempt) for s in p.disk} for p in self.processes]
        return set.intersection(*held)

    def check(self):
        """At every instant one save can be recovered, and where one has committed it, that or a newer."""
        if len(self.processes) < self.n:
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

    def decided(self, process, recoverable):
        session = process.domain.session
        assert self.decisions.setdefault(session, recoverable) == recoverable, "all load the same save"
        if recoverable is None:
            assert self.confirmed == 0
        else:
            assert recoverable[0] >= self.confirmed

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
        what = self.random.choice(("one", "all", "all", "board", "stale"))
        if what == "board":
            self.board = Board(self.n)
        elif what == "stale":
            if self.late:
                name, message = self.late.pop(self.random.randrange(len(self.late)))
                self.board.tell(name, message)
        else:
            for p in self.processes:
                if what == "all" or p.name == self.random.randrange(self.n):
                    p.start()

    def run(self, steps):
        for _ in range(steps):
            if self.random.random() < 0.01:
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
        done = 0
        for seed in range(3000):
            with self.subTest(seed=seed):
                world = World(seed)
                world.run(400)
                done += world.done
        print(f"{done} saves were committed in 3000 runs")
        self.assertGreater(done, 3000)
