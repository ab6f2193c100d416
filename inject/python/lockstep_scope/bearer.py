# SPDX-License-Identifier: Apache-2.0

"""The token that the service of commits asks for."""

from __future__ import annotations

import os
from typing import Dict, Mapping, Optional

_MAX = 8192  # bytes; a receiver takes a header of 16 KiB


class Token:
    """What a message shows the receiver: the token given, LOCKSTEP_COMMIT_TOKEN, or that in a file.

    The file is named by LOCKSTEP_COMMIT_TOKEN_FILE, and is read again where the receiver refuses what it held:
    so a token can be replaced while jobs run. A header Authorization of the caller's goes before all of them.
    """

    def __init__(self, given: Optional[str], headers: Mapping[str, str]) -> None:
        self._file, self._text = "", ""
        if any(name.lower() == "authorization" for name in headers):
            return
        text = os.environ.get("LOCKSTEP_COMMIT_TOKEN", "") if given is None else given
        if text:
            self._text = _check(text, "token")
            return
        self._file = "" if given is not None else os.environ.get("LOCKSTEP_COMMIT_TOKEN_FILE", "")
        if self._file:
            self._text = self._read()

    def headers(self) -> Dict[str, str]:
        return {"Authorization": f"Bearer {self._text}"} if self._text else {}

    def renew(self) -> bool:
        """Reads the file again, and returns whether there is another token in it."""
        if not self._file:
            return False
        try:
            text = self._read()
        except (OSError, ValueError):
            return False  # it is being replaced; the receiver's refusal says the rest
        renewed, self._text = text != self._text, text
        return renewed

    def _read(self) -> str:
        with open(self._file, "rb") as f:
            words = f.read(_MAX + 1).split()
        if not words:
            raise ValueError(f"commit: token: got an empty file {self._file!a:.80}; want a token in its first line")
        return _check(words[0].decode("ascii", "replace"), f"token in {self._file!a:.80}")


def _check(text: object, what: str) -> str:
    if not isinstance(text, str):
        raise TypeError(f"commit: {what}: got {type(text).__name__}; want text")
    if len(text) > _MAX or not all(33 <= ord(c) < 127 for c in text):  # what a header can hold; never printed
        raise ValueError(f"commit: {what}: got {len(text)} characters; want at most {_MAX}, of ASCII without spaces")
    return text
