# SPDX-License-Identifier: Apache-2.0

"""The way to the service that carries what domains tell to one another."""

from __future__ import annotations

import contextlib
import http.client
import io
import json
import os
import socket
import ssl
import threading
import time
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple
from urllib.parse import urlsplit

from .bearer import Token
from .bilateral import Answer

MAX_WAIT = 10.0  # seconds that the service keeps an answer back at most
PATIENCE = 15.0  # seconds for the way there and back

_PIECE = 0.25  # seconds that may go by before it is seen that an exchange is to be given up
_PATH = "/v1/commit"
_MAX_ANSWER = 1 << 20  # bytes; eight saves and sixteen names have less than 8 KiB


class Refused(RuntimeError):
    """The service refused what this domain told; the text says why, status is HTTP's."""

    def __init__(self, text: str, status: int = 0) -> None:
        super().__init__(text)
        self.status = status


class Unreachable(RuntimeError):
    """The service did not answer, or not so that it is of use. It may later."""


class Service:
    """One connection, which is made anew where it was lost. url is as http://gateway:13181.

    ended says whether an exchange is to be given up; who makes it say so calls interrupt() then.
    """

    def __init__(
        self, url: str, headers: Optional[Mapping[str, str]], context: Optional[ssl.SSLContext], token: Optional[str] = None
    ) -> None:
        if not isinstance(url, str):
            raise TypeError(f"commit: url: got {url!r:.80}; want text")
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError as e:
            raise ValueError(f"commit: url: got {url!r:.80}: {e}") from None
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"commit: url: got {url!r:.80}; want http://host:port, or LOCKSTEP_COMMIT_URL set so")
        self._path = parts.path.rstrip("/") + _PATH
        self._url = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{self._path}"  # for messages, so without a password
        self._headers = {"Content-Type": "application/json", **(headers or {})}
        self._token = Token(token, self._headers)
        tls = (context or ssl.create_default_context()) if parts.scheme == "https" else None
        self.ended: Callable[[], bool] = lambda: False
        self._make = lambda: _Connection(parts.hostname or "", port or (80 if tls is None else 443), tls, lambda: self.ended())
        self._connection: Optional[_Connection] = None

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None

    def interrupt(self) -> None:
        """Ends an exchange that another thread is at, or that a signal handler has interrupted. Takes no lock."""
        connection = self._connection
        if connection is not None:
            connection.interrupt()

    def abandon(self) -> None:
        """Closes a fork's copy of the connection, which its parent goes on with."""
        connection, self._connection = self._connection, None
        if connection is not None and connection.sock is not None:
            with contextlib.suppress(OSError):
                os.close(connection.sock.detach())  # a thread that there is no more may have been reading

    def exchange(self, message: Dict[str, Any], limit: float) -> Answer:
        """Sends a message and returns the answer, which is there before limit, of the monotonic clock.

        Raises Refused where the service will have none of it, Unreachable where it could not be asked
        in time or has no room now.
        """
        body = json.dumps(message).encode()
        try:
            try:
                used = self._connection is not None
                status, data = self._send(body, limit)
            except ConnectionError:
                if not used or self.ended():
                    raise
                self.close()  # it was closed since the last message, which may be long ago
                status, data = self._send(body, limit)
            if status == 401 and self._token.renew():
                status, data = self._send(body, limit)
        except (OSError, http.client.HTTPException) as e:
            self.close()
            raise Unreachable(f"ask {self._url}: {str(e) or type(e).__name__}") from e
        return self._answer(status, data)

    def _send(self, body: bytes, limit: float) -> Tuple[int, bytes]:
        if self._connection is None:
            self._connection = self._make()
        self._connection.limit = limit
        self._connection.request("POST", self._path, body, {**self._headers, **self._token.headers()})
        response = self._connection.getresponse()
        return response.status, response.read(_MAX_ANSWER + 1)

    def _answer(self, status: int, data: bytes) -> Answer:
        if len(data) > _MAX_ANSWER:
            self.close()
            raise Unreachable(f"ask {self._url}: got more than {_MAX_ANSWER} bytes")
        try:
            of = json.loads(data)
            if status == 200:
                return Answer.parse(of)
            why = str(of["error"])
        except (ValueError, KeyError, TypeError, RecursionError) as e:
            why = str(e) if status == 200 else data[:200].decode("utf-8", "replace").strip()
        if status == 401:
            why += "; set LOCKSTEP_COMMIT_TOKEN or LOCKSTEP_COMMIT_TOKEN_FILE to the receiver's token"
        text = f"ask {self._url}: status {status}: {why:.400}"
        if status in (400, 401, 403, 404, 405, 409, 415):
            raise Refused(text, status)
        raise Unreachable(text)


class _Connection(http.client.HTTPConnection):
    """A connection of which all ends before limit, of the monotonic clock.

    A socket's own timeout begins anew with each address of a name and each byte of an answer.
    """

    limit = 0.0
    sock: Any

    def __init__(self, host: str, port: int, tls: Optional[ssl.SSLContext], ended: Callable[[], bool]) -> None:
        self.default_port = 80 if tls is None else 443
        super().__init__(host, port)
        self._tls, self._ended = tls, ended
        self._current: Optional[socket.socket] = None

    def interrupt(self) -> None:
        sock = self._current
        if sock is not None:
            with contextlib.suppress(OSError):
                socket.socket.shutdown(sock, socket.SHUT_RDWR)  # not TLS's own, which would go on in the clear

    def _check(self, sock: Optional[socket.socket] = None) -> None:
        """Has interrupt() end what is done with a socket from here on; raises where it came before."""
        self._current = sock
        if self._ended():
            raise OSError("given up")

    def connect(self) -> None:
        sock = _dial(self.host, self.port, self.limit, self._check)
        try:
            if self._tls is not None:
                sock = self._tls.wrap_socket(sock, server_hostname=self.host, do_handshake_on_connect=False)
                self._check(sock)
                sock.settimeout(_left(self.limit))
                sock.do_handshake()
        except BaseException:
            sock.close()
            raise
        self.sock = _Socket(sock, self)


class _Socket:
    """What http.client needs of a socket."""

    def __init__(self, sock: socket.socket, connection: _Connection) -> None:
        self._sock, self._connection = sock, connection
        self.close, self.detach = sock.close, sock.detach

    def sendall(self, data: Any) -> None:
        self._sock.settimeout(_left(self._connection.limit))
        self._sock.sendall(data)

    def makefile(self, *_: Any) -> io.BufferedReader:
        return io.BufferedReader(_Reader(self._sock, self._connection))


class _Reader(io.RawIOBase):
    def __init__(self, sock: socket.socket, connection: _Connection) -> None:
        self._sock, self._connection = sock, connection
        self._file = sock.makefile("rb", buffering=0)  # keeps the socket open until it is read

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> Optional[int]:
        self._sock.settimeout(_left(self._connection.limit))
        return self._file.readinto(buffer)

    def close(self) -> None:
        self._file.close()
        super().close()


def _left(limit: float) -> float:
    left = limit - time.monotonic()
    if left <= 0:
        raise socket.timeout("timed out")
    return left


def _dial(host: str, port: int, limit: float, check: Callable[..., None] = lambda *_: None) -> socket.socket:
    """Connects to one of a name's addresses, each of which gets its share of the time."""
    addresses, problem = _resolve(host, port, limit, check), OSError(f"resolve {host}: got no address")
    for i, (family, kind, proto, _, address) in enumerate(addresses):
        sock = socket.socket(family, kind, proto)
        try:
            check(sock)
            sock.settimeout(_left(limit) / (len(addresses) - i))
            sock.connect(address)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return sock
        except OSError as e:
            sock.close()
            problem = e
    raise problem


def _resolve(host: str, port: int, limit: float, check: Callable[..., None]) -> List[Any]:
    """Returns a name's addresses. That cannot be given a time; so a thread of its own waits for it."""
    found: List[Any] = []

    def resolve() -> None:
        try:
            found.append(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        except Exception as e:
            found.append(e)

    thread = threading.Thread(target=resolve, name="lockstep-resolve", daemon=True)
    try:
        thread.start()
    except RuntimeError as e:  # the interpreter ends, or there is no room
        raise OSError(f"resolve {host}: {e}") from None
    while thread.is_alive():
        thread.join(min(_PIECE, max(0.0, limit - time.monotonic())))
        check()
        if not found and time.monotonic() >= limit:
            raise socket.timeout(f"resolve {host}: timed out")
    if isinstance(found[0], Exception):
        raise OSError(f"resolve {host}: {found[0]}")
    return found[0]
