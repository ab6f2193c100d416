"""The way to the service that carries what domains tell to one another."""

from __future__ import annotations

import http.client
import json
import ssl
from typing import Any, Dict, Mapping, Optional
from urllib.parse import urlsplit

from .bilateral import Answer

MAX_WAIT = 10.0  # seconds that the service keeps an answer back at most

_PATH = "/v1/commit"
_PATIENCE = 15.0  # seconds for the way there and back
_MAX_ANSWER = 1 << 20  # bytes; eight saves and sixteen names have less than 8 KiB


class Refused(RuntimeError):
    """The service refused what this domain told; the text says why."""


class Unreachable(RuntimeError):
    """The service did not answer, or not so that it is of use. It may later."""


class Service:
    """One connection, which is made anew where it was lost. url is as http://gateway:13181."""

    def __init__(self, url: str, headers: Optional[Mapping[str, str]], context: Optional[ssl.SSLContext]) -> None:
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError as e:
            raise ValueError(f"commit: url: got {url!r:.80}: {e}") from None
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"commit: url: got {url!r:.80}; want http://host:port, or LOCKSTEP_COMMIT_URL set so")
        self._url = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
        self._path = parts.path.rstrip("/") + _PATH
        self._headers = {"Content-Type": "application/json", **(headers or {})}
        self._make = lambda timeout: (
            http.client.HTTPSConnection(parts.hostname, port, timeout=timeout, context=context)
            if parts.scheme == "https"
            else http.client.HTTPConnection(parts.hostname, port, timeout=timeout)
        )
        self._connection: Optional[http.client.HTTPConnection] = None

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None

    def exchange(self, message: Dict[str, Any], wait: float) -> Answer:
        """Sends a message and returns the answer, which may take wait seconds and the way.

        Raises Refused where the service will have none of it, Unreachable where it could not be asked
        or has no room now.
        """
        body = json.dumps(message).encode()
        try:
            if self._connection is None:
                self._connection = self._make(_PATIENCE + MAX_WAIT)
            self._connection.timeout = wait + _PATIENCE
            if self._connection.sock is not None:
                self._connection.sock.settimeout(wait + _PATIENCE)
            self._connection.request("POST", self._path, body, self._headers)
            response = self._connection.getresponse()
            data = response.read(_MAX_ANSWER + 1)
        except (OSError, http.client.HTTPException) as e:
            self.close()
            raise Unreachable(f"ask {self._url}: {str(e) or type(e).__name__}") from e
        return self._answer(response.status, data)

    def _answer(self, status: int, data: bytes) -> Answer:
        if len(data) > _MAX_ANSWER:
            self.close()
            raise Unreachable(f"ask {self._url}: got more than {_MAX_ANSWER} bytes")
        try:
            of = json.loads(data)
            if status == 200:
                return Answer.parse(of)
            why = str(of["error"])
        except (ValueError, KeyError, TypeError) as e:
            why = str(e)
        text = f"ask {self._url}: status {status}: {why:.400}"
        if status in (400, 401, 403, 404, 405, 409, 415):
            raise Refused(text)
        raise Unreachable(text)
