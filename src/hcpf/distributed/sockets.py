"""Arrays sent straight from worker to worker, over one TCP connection per sender and receiver.

A call of a Ray actor takes about two milliseconds of two cores, and a large array is copied into an
object store and mapped from there. Between workers that exchange a few arrays many times that is
most of the cost. So every worker listens at its node's address on a port of its own. Whoever
connects must prove that it knows the secret of the group, which Ray has carried to all workers, and
so must the listener. Nothing is pickled: a message is a line of JSON, and the bytes of its arrays.
"""

import hmac
import json
import logging
import os
import secrets
import socket
import struct
from collections.abc import Sequence
from contextlib import suppress
from threading import Thread
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcpf.distributed.messages import Key, Mailbox

logger = logging.getLogger("hcpf")

Address = tuple[str, int]
Arrays = tuple[NDArray[Any], ...]

_CONNECT_SECONDS = 5.0
_LENGTH = struct.Struct("<I")
_NONCE_BYTES, _PROOF_BYTES = 32, 32


class Listener:
    """Takes the messages of all workers that connect, and puts them into the mailbox."""

    def __init__(self, host: str, secret: bytes, mailbox: Mailbox) -> None:
        self._secret, self._mailbox = secret, mailbox
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._socket = socket.create_server((host, 0), family=family, backlog=128)
        self.address: Address = (host, self._socket.getsockname()[1])
        Thread(target=self._accept, daemon=True, name="hcpf listener").start()

    def close(self) -> None:
        """Accept no further connections."""
        self._socket.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return  # closed
            Thread(target=self._read, args=(connection,), daemon=True, name="hcpf mail").start()

    def _read(self, connection: socket.socket) -> None:
        """Read messages until the connection ends."""
        with connection:
            try:
                rank = self._rank_of(connection)
            except OSError:
                return
            try:
                while rank is not None:
                    self._mailbox.put(rank, *_receive(connection))
            except OSError:
                self._mailbox.lose(rank)

    def _rank_of(self, connection: socket.socket) -> int | None:
        """Return who has connected; None if it does not know the secret."""
        connection.settimeout(_CONNECT_SECONDS)
        nonce = secrets.token_bytes(_NONCE_BYTES)
        connection.sendall(nonce)
        name = bytes(_read(connection, _LENGTH.size))
        proof = bytes(_read(connection, _PROOF_BYTES))
        if not hmac.compare_digest(proof, _proof(self._secret, b"from", nonce, name)):
            logger.warning("A connection without the secret of the group was refused.")
            return None
        connection.sendall(_proof(self._secret, b"to", nonce, name))
        connection.settimeout(None)
        return _LENGTH.unpack(name)[0]


class Connections:
    """One worker's connections to the listeners of the others, made when first needed."""

    def __init__(self, rank: int, secret: bytes, addresses: Sequence[Address | None]) -> None:
        self._rank, self._secret, self._addresses = rank, secret, addresses
        self._open: dict[int, socket.socket | None] = {}

    def send(self, rank: int, key: Key, arrays: Arrays) -> bool:
        """Send a message; return False if that worker cannot be connected to."""
        if rank not in self._open:
            self._open[rank] = self._connect(rank)
        connection = self._open[rank]
        if connection is None:
            return False
        head = json.dumps([*key, [(x.dtype.str, x.shape) for x in arrays]]).encode()
        # Where this fails, the driver notices the lost worker, or the worker the lost connection.
        with suppress(OSError):
            connection.sendall(_LENGTH.pack(len(head)) + head)
            for x in arrays:
                connection.sendall(_bytes_of(np.ascontiguousarray(x)))
        return True

    def close(self) -> None:
        """Close all connections."""
        for connection in self._open.values():
            if connection is not None:
                connection.close()
        self._open.clear()

    def _connect(self, rank: int) -> socket.socket | None:
        address = self._addresses[rank]
        if address is None:
            return None
        try:
            return self._introduced(socket.create_connection(address, _CONNECT_SECONDS))
        except OSError as error:
            logger.warning(
                "Worker %d cannot connect to worker %d at %s:%d (%s). Messages go through Ray, "
                "which is slower. Open the ports between the nodes.",
                self._rank, rank, *address, error,
            )  # fmt: skip
            return None

    def _introduced(self, connection: socket.socket) -> socket.socket:
        """Return the connection once both sides have shown that they know the secret."""
        try:
            nonce, name = bytes(_read(connection, _NONCE_BYTES)), _LENGTH.pack(self._rank)
            connection.sendall(name + _proof(self._secret, b"from", nonce, name))
            answer = bytes(_read(connection, _PROOF_BYTES))
            if not hmac.compare_digest(answer, _proof(self._secret, b"to", nonce, name)):
                raise ConnectionError("it does not know the secret of the group")
        except OSError:
            connection.close()
            raise
        connection.settimeout(None)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection


def listen(host: str, secret: bytes, mailbox: Mailbox) -> Listener | None:
    """Return a listener, or None where Ray encrypts what it sends or the host is not ours."""
    if os.environ.get("RAY_USE_TLS", "0").lower() not in ("", "0", "false"):
        return None
    try:
        return Listener(host, secret, mailbox)
    except OSError as error:
        logger.warning(
            "No worker can connect to %s (%s). Messages go through Ray, which is slower.",
            host, error,
        )  # fmt: skip
        return None


def is_arrays(payload: Any) -> bool:
    """Return whether a message consists of arrays of numbers, which need no pickling."""
    return isinstance(payload, tuple) and all(
        isinstance(x, np.ndarray) and x.dtype.kind in "biufU"
        for x in payload  # pyright: ignore
    )


def _proof(secret: bytes, direction: bytes, nonce: bytes, name: bytes) -> bytes:
    return hmac.digest(secret, direction + nonce + name, "sha256")


def _receive(connection: socket.socket) -> tuple[Key, Arrays]:
    (length,) = _LENGTH.unpack(_read(connection, _LENGTH.size))
    number, name, kinds = json.loads(bytes(_read(connection, length)))
    arrays = tuple(np.empty(shape, np.dtype(kind)) for kind, shape in kinds)
    for array in arrays:
        _read_into(connection, _bytes_of(array))
    return (number, name), arrays


def _bytes_of(array: NDArray[Any]) -> NDArray[np.uint8]:
    return array.reshape(-1).view(np.uint8)


def _read(connection: socket.socket, length: int) -> NDArray[np.uint8]:
    found = np.empty(length, np.uint8)
    _read_into(connection, found)
    return found


def _read_into(connection: socket.socket, buffer: NDArray[np.uint8]) -> None:
    view, done = memoryview(buffer), 0
    while done < len(view):
        n_bytes = connection.recv_into(view[done:], 0, socket.MSG_WAITALL)
        if n_bytes == 0:
            raise ConnectionError("the connection was closed")
        done += n_bytes
