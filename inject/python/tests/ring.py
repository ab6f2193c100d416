# SPDX-License-Identifier: Apache-2.0

"""Reads rings that nobody writes any more, by docs/format/ring.md."""

import pathlib
import struct

PHASES = ("", "init", "compile", "train", "eval", "checkpoint", "inference")
STRINGS, COMMS, LANES, RECORDS = 2, 3, 7, 8


class Ring:
    """The records of one process."""

    def __init__(self, path):
        self.data = pathlib.Path(path).read_bytes()
        assert self.data[:8] == b"LKSTRING", path
        self.rank = self._at("<i", 64)
        self.drops = [self._at("<Q", 1536 + 8 * i) for i in range(32)]
        self.sections = {}
        for i in range(8):
            kind, size, offset, count = struct.unpack_from("<IIQQ", self.data, 1024 + 32 * i)
            self.sections[kind] = (offset, size, count)
        self.steps, self.scopes, self.links, self.ops, self.resumes, self.fingerprints = [], [], [], [], [], []
        for words in self._records():
            self._add(words)
        self.scopes.sort(key=lambda s: s["begin"])

    def _at(self, form, offset):
        return struct.unpack_from(form, self.data, offset)[0]

    def _text(self, offset, size):
        return self.data[offset : offset + size].split(b"\0")[0].decode()

    def string(self, code):
        offset, size, _ = self.sections[STRINGS]
        return self._text(offset + code * size + 8, 56) if code else ""

    def comm(self, index):
        offset, size, _ = self.sections[COMMS]
        at = offset + index * size
        hash_, nranks, rank = struct.unpack_from("<Qii", self.data, at + 8)
        return {"hash": hash_, "size": nranks, "rank": rank, "name": self._text(at + 48, 128)}

    def _records(self):
        offset, size, count = self.sections[LANES]
        records, _, total = self.sections[RECORDS]
        capacity = total // count
        for lane in range(count):
            head = self._at("<Q", offset + lane * size + 8)
            for n in range(max(0, head - capacity), head):
                words = struct.unpack_from("<16Q", self.data, records + 128 * (lane * capacity + n % capacity))
                assert words[0] == n + 1, (lane, n, words[0])
                yield words

    def _add(self, w):
        kind = w[1] & 0xFF
        if kind == 2:
            self.steps.append(w[2])
        elif kind == 3:
            self.scopes.append({
                "name": self.string(w[5] & 0xFFFFFFFF), "begin": w[2], "end": w[3], "thread": w[4] >> 32,
                "step": w[4] & 0xFFFFFFFF, "depth": w[5] >> 32 & 0xFFFF, "phase": PHASES[w[5] >> 48],
            })  # fmt: skip
        elif kind == 10:
            ids = struct.pack("<QQQ", *w[3:6])
            self.links.append({"step": w[2], "trace": ids[:16].hex(), "span": ids[16:].hex()})
        elif kind == 11:
            flags, data = w[1] >> 16 & 0xFFFF, struct.pack("<10Q", *w[6:16])
            self.resumes.append({
                "step": w[2], "optimizer": w[3] if flags & 1 else None, "rng": data[:16].hex() if flags & 2 else None,
                "cursor": data[16:48].rstrip(b"\0").decode() if flags & 4 else None,
                "replica": data[48:80].rstrip(b"\0").decode() if flags & 8 else None, "number": w[5] >> 32,
            })  # fmt: skip
        elif kind == 12:
            group = struct.pack("<4Q", *w[8:12]).rstrip(b"\0").decode()
            self.fingerprints.append({
                "step": w[2], "hash": f"{w[3]:016x}", "start": w[6], "total": w[7],
                "group": group, "replicas": w[5] >> 32,
            })  # fmt: skip
        elif kind == 1:
            self.ops.append({
                "func": self.string(w[1] >> 48 & 0xFF), "dtype": self.string(w[1] >> 56), "seq": w[3], "bytes": w[4],
                "comm": self.comm(w[1] >> 32 & 0xFFFF), "begin": w[6], "end": w[11],
            })  # fmt: skip

    def names(self):
        return [s["name"] for s in self.scopes]


def read(directory):
    """Returns the rings of a directory, by rank where they have one."""
    rings = [Ring(path) for path in sorted(pathlib.Path(directory).glob("[!.]*.ring"))]
    return sorted(rings, key=lambda r: r.rank)
