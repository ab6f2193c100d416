# SPDX-License-Identifier: Apache-2.0

"""What a shared library exports, read from its file: a damaged one is not loaded.

The loader maps a file without asking whether it is whole, and a page that is
not there ends the process. Source: the ELF-64 object file format, as elf.h has it.
"""

from __future__ import annotations

import os
import stat
import struct
from typing import BinaryIO, Dict, List, Tuple

_IDENT = b"\x7fELF\x02\x01\x01"  # 64 bits, little endian, version 1
_SHARED = 3  # ET_DYN
_LOAD, _DYNAMIC = 1, 2  # PT_LOAD, PT_DYNAMIC
_STRINGS = struct.pack("<I", 3)  # SHT_STRTAB
_STRTAB, _SYMTAB, _STRSZ = 5, 6, 10  # DT_...
_MOST = 16 << 20  # bytes of a table

_Segment = Tuple[int, int, int, int]  # type, offset, address, size in the file


class NotWhole(ValueError):
    """A file that is no shared library, or a part of one."""


def symbol_names(path: str) -> bytes:
    """Returns the names of a shared library's symbols, each between zero bytes.

    Raises OSError for what cannot be read, NotWhole for a file that is not a
    whole shared library.
    """
    # A pipe would be waited for.
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise NotWhole("it is no regular file")
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        segments = _segments(file, size)
        dynamic = [segment for segment in segments if segment[0] == _DYNAMIC]
        if not dynamic:
            raise NotWhole("it is no shared library")
        entries = _entries(_read(file, dynamic[0][1], dynamic[0][3], size))
        if not {_STRTAB, _SYMTAB, _STRSZ} <= entries.keys():
            raise NotWhole("its dynamic section is not whole")
        return _read(file, _offset(segments, entries[_STRTAB]), entries[_STRSZ], size)


def _read(file: BinaryIO, offset: int, length: int, size: int) -> bytes:
    _within(offset, length, size)
    if length > _MOST:
        raise NotWhole(f"it has a table of {length} bytes; want at most {_MOST}")
    file.seek(offset)
    data = file.read(length)
    if len(data) < length:
        raise NotWhole("it is not whole: it became shorter")
    return data


def _segments(file: BinaryIO, size: int) -> List[_Segment]:
    header = file.read(64)
    if len(header) < 64 or not header.startswith(_IDENT):
        raise NotWhole("it is no 64-bit ELF file")
    kind, _, _, _, at, sections = struct.unpack_from("<HHIQQQ", header, 16)
    each, count, section, section_count, names = struct.unpack_from("<HHHHH", header, 54)
    if kind != _SHARED or each != 56:
        raise NotWhole("it is no shared library")
    # The table of sections is what a linker writes last: blocks of a copy that is
    # under way may be missing before it.
    table = _read(file, sections, section * section_count, size)
    if table and table[section * names + 4 : section * names + 8] != _STRINGS:
        raise NotWhole("its table of sections is not whole")
    table = _read(file, at, count * each, size)
    segments = []
    for kind, _, offset, address, _, length, _, _ in struct.iter_unpack("<IIQQQQQQ", table):
        _within(offset, length, size)
        segments.append((kind, offset, address, length))
    return segments


def _within(offset: int, length: int, size: int) -> None:
    if offset + length > size:
        raise NotWhole(f"it is not whole: it has {size} bytes of {offset + length}")


def _entries(dynamic: bytes) -> Dict[int, int]:
    entries: Dict[int, int] = {}
    for tag, value in struct.iter_unpack("<qQ", dynamic[: len(dynamic) // 16 * 16]):
        if tag == 0:
            break
        entries[tag] = value
    return entries


def _offset(segments: List[_Segment], address: int) -> int:
    for kind, offset, start, length in segments:
        if kind == _LOAD and start <= address < start + length:
            return offset + address - start
    raise NotWhole("its strings are in no segment")
