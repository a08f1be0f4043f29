"""Arrays sent straight from worker to worker, over one TCP connection per sender and receiver.

A call of a Ray actor takes about two milliseconds of two cores, and a large array is copied into an
object store and mapped from there. Between workers that exchange a few arrays many times that is
most of the cost. So every worker listens at its node's address on a separate port. Whoever
connects must prove that it knows the secret of the group, which Ray has carried to all workers, and
so must the listener. Nothing is pickled: a message is a line of JSON, and the bytes of its arrays.

A group that restarts has new workers, ports and a new secret. No wait is without a limit: what
cannot connect goes through Ray, and the end of a connection is noted in the mailbox of the worker
at either end that still lives.
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

from hcpf.distributed.messages import ConnectionLostError, Key, Mailbox

logger = logging.getLogger("hcpf")

Address = tuple[str, int]
Arrays = tuple[NDArray[Any], ...]

_CONNECT_SECONDS = 5.0  # the system answers, however busy the worker is
_HANDSHAKE_SECONDS = 60.0  # a worker that loads its data may answer late
_SEND_SECONDS = 120.0  # for each of the chunks
_CHUNK_BYTES = 1 << 24
_MAX_FAILURES = 3  # connections that fail before a worker tries no others
_KEEP_ALIVE = {"TCP_KEEPIDLE": 60, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 6}  # seconds, and a number

_LENGTH = struct.Struct("<I")
_RANKS = struct.Struct("<II")  # of the sender and of the receiver
_NONCE_BYTES, _PROOF_BYTES = 32, 32


class Listener:
    """Takes the messages of all workers that connect, and puts them into the mailbox."""

    def __init__(self, host: str, rank: int, secret: bytes, mailbox: Mailbox) -> None:
        self._rank, self._secret, self._mailbox = rank, secret, mailbox
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._socket = socket.create_server((host, 0), family=family, backlog=128)
        self._socket.settimeout(None)
        self.address: Address = (host, self._socket.getsockname()[1])
        self._is_closed = False
        Thread(target=self._accept, daemon=True, name="hcpf listener").start()

    def close(self) -> None:
        """Accept no further connections."""
        self._is_closed = True
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # which ends the waiting in another thread

    def _accept(self) -> None:
        with self._socket:  # once closed, for example for want of file descriptors, it refuses
            while True:
                try:
                    connection, _ = self._socket.accept()
                except ConnectionAbortedError:
                    continue
                except OSError as error:
                    if not self._is_closed:
                        logger.warning("No further worker can connect (%s).", error)
                    return
                Thread(target=self._read, args=(connection,), daemon=True, name="hcpf mail").start()

    def _read(self, connection: socket.socket) -> None:
        """Read messages until the connection ends."""
        with connection:
            try:
                rank = self._rank_of(connection)
            except OSError as error:
                logger.warning("A connection was refused: %s.", error)
                return
            try:
                while True:
                    self._mailbox.put(rank, *_receive(connection))
            except Exception as error:  # whatever it is, no further message can be read
                self._mailbox.lose(rank, f"{type(error).__name__}: {error}")

    def _rank_of(self, connection: socket.socket) -> int:
        """Return who has connected; raise an error if it does not know the secret."""
        connection.settimeout(_HANDSHAKE_SECONDS)
        nonce = secrets.token_bytes(_NONCE_BYTES)
        connection.sendall(nonce)
        hello = _read(connection, _RANKS.size + _NONCE_BYTES)
        proof = _read(connection, _PROOF_BYTES)
        if not hmac.compare_digest(proof, _proof(self._secret, b"from", nonce + hello)):
            raise ConnectionError("it does not know the secret of the group")
        sender, receiver = _RANKS.unpack_from(hello)
        if receiver != self._rank:
            raise ConnectionError(f"it was meant for worker {receiver}")
        connection.sendall(_proof(self._secret, b"to", nonce + hello))
        connection.settimeout(None)
        _keep_alive(connection)
        return sender


class Connections:
    """One worker's connections to the listeners of the others, made when first needed."""

    def __init__(
        self, rank: int, secret: bytes, addresses: Sequence[Address | None], mailbox: Mailbox
    ) -> None:
        self._rank, self._secret, self._addresses = rank, secret, addresses
        self._mailbox = mailbox
        self._open: dict[int, socket.socket | None] = {}
        self.failures: dict[int, str] = {}
        """Why workers could not be connected to."""

    def send(self, rank: int, key: Key, arrays: Arrays) -> bool:
        """Send a message; return False if that worker cannot be connected to."""
        if rank not in self._open:
            self._open[rank] = self._connect(rank)
        connection = self._open[rank]
        if connection is None:
            return False
        head = json.dumps([*key, [(x.dtype.str, x.shape) for x in arrays]]).encode()
        try:
            connection.sendall(_LENGTH.pack(len(head)) + head)
            for x in arrays:
                view = _bytes_of(np.ascontiguousarray(x))
                for first in range(0, len(view), _CHUNK_BYTES):
                    connection.sendall(view[first : first + _CHUNK_BYTES])
        except OSError as error:
            connection.close()  # nothing may follow half a message
            self._mailbox.lose(rank, f"{type(error).__name__}: {error}")
        return True

    def close(self) -> None:
        """Close all connections."""
        for connection in self._open.values():
            if connection is not None:
                connection.close()

    def _connect(self, rank: int) -> socket.socket | None:
        address = self._addresses[rank]
        if address is None or len(self.failures) >= _MAX_FAILURES:
            return None
        try:
            connection = socket.create_connection(address, _CONNECT_SECONDS)
            try:
                self._introduce(connection, rank)
            except BaseException:
                connection.close()
                raise
        except OSError as error:
            self.failures[rank] = f"{address[0]} port {address[1]}: {error}"
            return None
        connection.settimeout(_SEND_SECONDS)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        _keep_alive(connection)
        return connection

    def _introduce(self, connection: socket.socket, rank: int) -> None:
        """Prove knowledge of the secret to a listener, and have it do the same."""
        connection.settimeout(_HANDSHAKE_SECONDS)
        nonce = _read(connection, _NONCE_BYTES)
        hello = _RANKS.pack(self._rank, rank) + secrets.token_bytes(_NONCE_BYTES)
        connection.sendall(hello + _proof(self._secret, b"from", nonce + hello))
        try:
            answer = _read(connection, _PROOF_BYTES)
        except TimeoutError:
            # Perhaps it waits for messages here, so they cannot go through Ray.
            raise ConnectionLostError(rank, "it did not answer") from None
        if not hmac.compare_digest(answer, _proof(self._secret, b"to", nonce + hello)):
            raise ConnectionError("it does not know the secret of the group")


def listen(host: str, rank: int, secret: bytes, mailbox: Mailbox) -> Listener | None:
    """Return a listener, or None where Ray encrypts what it sends or the host is not ours."""
    if os.environ.get("RAY_USE_TLS", "0").lower() not in ("", "0", "false"):
        return None
    try:
        return Listener(host, rank, secret, mailbox)
    except OSError as error:
        logger.warning(
            "No worker can connect to %s (%s). Messages go through Ray, which is slower.",
            host, error,
        )  # fmt: skip
        return None


def is_arrays(payload: Any) -> bool:
    """Return whether a message consists of arrays of numbers or text, which need no pickling."""
    return isinstance(payload, tuple) and all(
        isinstance(x, np.ndarray) and x.dtype.kind in "biufU"
        for x in payload  # pyright: ignore
    )


def _proof(secret: bytes, direction: bytes, exchanged: bytes) -> bytes:
    return hmac.digest(secret, direction + exchanged, "sha256")


def _keep_alive(connection: socket.socket) -> None:
    """Have the system end a connection whose other end has not answered for two minutes."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEP_ALIVE.items():
        if hasattr(socket, name):  # not on every system
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def _receive(connection: socket.socket) -> tuple[Key, Arrays]:
    (length,) = _LENGTH.unpack(_read(connection, _LENGTH.size))
    number, name, kinds = json.loads(_read(connection, length))
    arrays = tuple(np.empty(shape, np.dtype(kind)) for kind, shape in kinds)
    for array in arrays:
        _read_into(connection, _bytes_of(array))
    return (number, name), arrays


def _bytes_of(array: NDArray[Any]) -> memoryview:
    return array.reshape(-1).view(np.uint8).data


def _read(connection: socket.socket, length: int) -> bytes:
    buffer = bytearray(length)
    _read_into(connection, memoryview(buffer))
    return bytes(buffer)


def _read_into(connection: socket.socket, view: memoryview) -> None:
    done = 0
    while done < len(view):
        chunk = view[done : done + _CHUNK_BYTES]
        n_bytes = connection.recv_into(chunk, 0, socket.MSG_WAITALL)
        if n_bytes == 0:
            raise ConnectionError("it was closed")
        done += n_bytes
