# SPDX-License-Identifier: Apache-2.0

"""The rule by which the domains of a job commit a save together, without disk or network.

A domain writes down how far it is with a save before it tells: tentative, its part is on its disk;
reflecting, it knows that all are tentative; committed, it knows that all are reflecting, and only now
lets go of the saves before. It is the rule of docs/models/bilateral.pml; docs/format/commit.md
specifies what is told and what is kept.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field, replace
from typing import Any, Dict, List, Optional, Set, Tuple

TENTATIVE, REFLECTING, COMMITTED = STATES = ("tentative", "reflecting", "committed")

MAX_SLOTS = 8  # saves side by side, as many as a message may have
MAX_DOMAINS = 131072  # of a job, as many as a message may say

# Sessions of one life that are remembered. Each domain that begins makes one, and where all begin anew
# because they have left too many, that makes fewer than would have them do so again.
_LEFT_MIN, _LEFT_EACH = 100, 4


@dataclass(frozen=True)
class Part:
    """What a save has below one path, relative to the folder: at least so many files and bytes."""

    path: str
    files: int
    bytes: int


@dataclass(frozen=True)
class Slot:
    """A save of which the domain holds its part. attempt tells attempts at one epoch apart.

    gone: it held it, and the part is not there any more. That is not told; how far all were with it
    stays known.
    """

    epoch: int
    attempt: str
    state: str
    parts: Tuple[Part, ...] = ()
    gone: bool = field(default=False, compare=False)


@dataclass(frozen=True)
class Save:
    """How many domains are at least so far with a save."""

    tentative: int
    reflecting: int
    committed: int


@dataclass(frozen=True)
class Answer:
    """What all domains have told, as docs/format/commit.md specifies it."""

    domains: int
    session: str
    joined: int
    recoverable: Optional[Tuple[int, str]]
    lost: Optional[Tuple[int, str]]
    saves: Dict[Tuple[int, str], Save]
    heard: int = 0
    missing: Tuple[str, ...] = ()
    missing_count: int = 0

    @classmethod
    def parse(cls, data: Any) -> "Answer":
        """Reads an answer; raises ValueError where it is none."""
        try:
            if data["version"] != 1:
                raise ValueError(f"got version {data['version']!r:.20}; want 1")
            return cls(
                domains=_count(data["domains"]), session=_text(data["session"]), joined=_count(data["joined"]),
                recoverable=_attempt(data["recoverable"]), lost=_attempt(data["lost"]),
                saves={
                    (_count(s["epoch"]), _text(s["attempt"])): Save(*(_count(s[k]) for k in STATES)) for s in data["saves"]
                },
                heard=_count(data["heard"]), missing=tuple(_text(m) for m in data.get("missing") or ()),
                missing_count=_count(data.get("missing_count", 0)),
            )
        except (KeyError, TypeError) as e:
            raise ValueError(f"got an answer without {e}") from None


def _count(n: Any) -> int:
    if type(n) is not int or not 0 <= n < 2**63:
        raise ValueError(f"got {n!r:.40}; want an integer from 0 to 2**63-1")
    return n


def _text(s: Any) -> str:
    if type(s) is not str:
        raise ValueError(f"got {s!r:.40}; want text")
    return s


def _attempt(a: Any) -> Optional[Tuple[int, str]]:
    return None if a is None else (_count(a["epoch"]), _text(a["attempt"]))


class Domain:
    """One domain: the slots that are on its disk, and what is in its memory alone.

    Every method that returns slots asks for them to be written down; they hold, and may be told, once
    wrote() was called with them.
    """

    def __init__(self, domains: int, slots: Tuple[Slot, ...] = ()) -> None:
        self.domains = domains
        self.slots = slots
        self.begin()

    def begin(self) -> None:
        """Begins a life, which takes part in no session yet."""
        self.life = secrets.token_hex(16)
        self.sequence = 0
        self.session = ""
        self.left: Set[str] = set()
        self.decided = False

    def message(self) -> Dict[str, Any]:
        """Returns what there is to tell."""
        self.sequence += 1
        return {
            "version": 1, "domains": self.domains, "life": self.life, "sequence": self.sequence, "session": self.session,
            "slots": [{"epoch": s.epoch, "attempt": s.attempt, "state": s.state} for s in self.slots if not s.gone],
        }

    def wrote(self, slots: Tuple[Slot, ...]) -> None:
        self.slots = slots

    def join(self, answer: Answer) -> bool:
        """Takes part in the session of an answer; False where there is something to tell first.

        All have told of a session whose random name holds a token of this life: so what they told
        with it is not from before.
        """
        if answer.session and answer.session != self.session:
            self._leave(answer.session)
            return False
        return self.joined(answer)

    def _leave(self, session: str) -> None:
        """Leaves a session for another, and never comes back to it in this life.

        A service that forgot may hear late what was told with a session that is over, of domains
        which hold something else now. Where it comes to that all the same, a new life makes a name
        that nobody has left. Were that so each time that a session is left, the domains that it was
        left by would drive one another on for ever.
        """
        if session in self.left or len(self.left) >= _LEFT_MIN + _LEFT_EACH * self.domains:
            self.begin()
            return
        if self.session:
            self.left.add(self.session)
        self.session, self.decided = session, False

    def joined(self, answer: Answer) -> bool:
        return bool(self.session) and answer.session == self.session and answer.joined == self.domains == answer.domains

    def decide(self, answer: Answer) -> Tuple[Slot, ...]:
        """Returns the slots without those after the newest save that all hold.

        Asked of a domain that has joined, and whose slots are still those that it told then.
        """
        epoch = answer.recoverable[0] if answer.recoverable else -1
        return tuple(s for s in self.slots if s.epoch <= epoch)

    def lost(self, answer: Answer) -> Optional[Tuple[int, str]]:
        """Returns the newest save that all held, newer than what all hold; None where there is none.

        Who has lost its own part does not tell of it any more; that all held the save, it still knows.
        """
        known = [(s.epoch, s.attempt) for s in self.slots if s.gone and s.state != TENTATIVE]
        if answer.lost is not None:
            known.append(answer.lost)
        newest = max(known, default=None)
        held = answer.recoverable[0] if answer.recoverable else -1
        return newest if newest is not None and newest[0] > held else None

    def restarted(self, answer: Answer) -> bool:
        """Reports whether a domain of the session was begun anew."""
        return bool(answer.session) and answer.session != self.session

    def advance(self, answer: Answer) -> Optional[Tuple[Slot, ...]]:
        """Returns the slots one step further, as far as an answer allows it; None where it does not."""
        if answer.domains != self.domains:
            return None
        for i, slot in reversed(list(enumerate(self.slots))):
            save = answer.saves.get((slot.epoch, slot.attempt))
            if save is None:
                continue
            if slot.state == TENTATIVE and save.tentative == self.domains:
                return self._put(i, replace(slot, state=REFLECTING))
            if slot.state == REFLECTING and save.reflecting == self.domains:
                return (replace(slot, state=COMMITTED),) + self.slots[i + 1 :]
        return None

    def _put(self, i: int, slot: Slot) -> Tuple[Slot, ...]:
        return self.slots[:i] + (slot,) + self.slots[i + 1 :]

    def save(self, epoch: int, parts: Tuple[Part, ...] = ()) -> Tuple[Slot, ...]:
        """Returns the slots with the save of an epoch, of which the part is on the disk."""
        return self.slots + (Slot(epoch, self.session, TENTATIVE, parts),)

    def state(self, epoch: int) -> Optional[str]:
        return next((s.state for s in self.slots if s.epoch == epoch), None)

    def waits(self, epoch: int) -> str:
        """Returns how far all must be for this domain to go on with the save of an epoch."""
        return TENTATIVE if self.state(epoch) == TENTATIVE else REFLECTING

    def progress(self) -> Tuple[Any, ...]:
        """Returns what changes as this domain comes further."""
        return self.session, self.slots

    def epochs(self) -> List[int]:
        return [s.epoch for s in self.slots]
