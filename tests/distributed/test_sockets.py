"""Connections between workers: the same bits as through Ray, only for those who know the secret."""

import socket
import threading
import time

import numpy as np
import pytest

from distributed.test_connection import closed_port
from distributed.test_messages import ThreadNetwork
from hcpf.distributed import messages, sockets
from hcpf.distributed.messages import ConnectionLostError, Mailbox, MessageCollective
from hcpf.distributed.sockets import Connections, Listener, is_arrays, listen
from training.test_collective import assert_equal_to_the_bit, prepare
from training.workers import run_together

SECRET = b"s" * 32


class SocketNetwork(ThreadNetwork):
    """Carries arrays over connections of the loopback address, and all else between threads."""

    def __init__(self, rank, mailboxes, listeners, secret=SECRET):
        super().__init__(rank, mailboxes)
        addresses = [listener.address for listener in listeners]
        self.connections = Connections(rank, secret, addresses)

    def send(self, ranks, key, payload):
        for rank in ranks:
            if not (is_arrays(payload) and self.connections.send(rank, key, payload)):
                super().send([rank], key, payload)


@pytest.fixture
def group():
    """Mailboxes and listeners of three workers."""
    mailboxes = [Mailbox() for _ in range(3)]
    listeners = [Listener("127.0.0.1", SECRET, mailbox) for mailbox in mailboxes]
    yield mailboxes, listeners
    for listener in listeners:
        listener.close()


def test_a_fit_has_the_bits_of_the_thread_collective(group):
    shared, networks = prepare("gamma", passes=4, vary_by="both"), {}

    def make_comm(meeting, rank, max_calls):
        networks[rank] = SocketNetwork(rank, *group)
        return MessageCollective(networks[rank])

    found = run_together(*shared, 3, make_comm=make_comm)
    assert_equal_to_the_bit(found, run_together(*shared, 3))
    for network in networks.values():
        assert None not in network.connections._open.values()
        assert len(network.connections._open) == 2
        network.connections.close()


@pytest.mark.parametrize(
    "arrays",
    [
        (np.arange(6.0).reshape(2, 3)[:, ::2], np.array(["a", "bcd"]), np.array([True])),
        (np.empty((0, 4), np.float32), np.float64(2.0).reshape(()), np.arange(3, dtype=np.uint8)),
        (np.random.default_rng(0).random((300_000, 7)),),  # more than a connection buffers
    ],
)
def test_arrays_arrive_as_they_are(group, arrays):
    mailboxes, listeners = group
    network = SocketNetwork(1, mailboxes, listeners)
    network.send([0], (1, "sum"), arrays)
    found = mailboxes[0].take(1, (1, "sum"))
    network.connections.close()
    for mine, theirs in zip(found, arrays, strict=True):
        assert mine.dtype == theirs.dtype
        np.testing.assert_array_equal(mine, theirs)
        assert mine.shape == theirs.shape


def test_whoever_does_not_know_the_secret_is_refused(group, caplog):
    mailboxes, listeners = group
    wrong = Connections(1, b"w" * 32, [listener.address for listener in listeners])
    assert not wrong.send(0, (1, "sum"), (np.ones(1),))
    assert "cannot connect to worker 0" in caplog.text
    assert "without the secret of the group was refused" in caplog.text
    assert not mailboxes[0]._messages


def test_a_listener_must_know_the_secret_too(caplog):
    def impostor():
        with server.accept()[0] as connection:
            connection.sendall(b"n" * 32)
            connection.recv(100)
            connection.sendall(b"p" * 32)

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=impostor)
        thread.start()
        address = server.getsockname()
        assert not Connections(1, SECRET, [address]).send(0, (1, "sum"), (np.ones(1),))
        thread.join()
    assert "it does not know the secret" in caplog.text


def test_where_nobody_can_connect_messages_take_the_other_way(caplog):
    mailboxes = [Mailbox() for _ in range(2)]
    addresses = [("127.0.0.1", closed_port()), None]

    def network(rank):
        made = SocketNetwork(rank, mailboxes, [])
        made.connections = Connections(rank, SECRET, addresses)
        return made

    networks = [network(0), network(1)]
    for rank, other in ((0, 1), (1, 0)):
        networks[rank].send([other], (1, "sum"), (np.full(2, rank),))
        np.testing.assert_array_equal(mailboxes[other].take(rank, (1, "sum"))[0], [rank] * 2)
    assert caplog.text.count("Messages go through Ray") == 1  # no address: nothing was tried


def test_a_lost_connection_is_an_error_after_a_while(group, monkeypatch):
    monkeypatch.setattr(messages, "_LOST_SECONDS", 0.2)
    mailboxes, listeners = group
    network = SocketNetwork(2, mailboxes, listeners)
    network.send([0], (1, "sum"), (np.ones(1),))
    network.connections.close()
    assert mailboxes[0].take(2, (1, "sum"))[0] == 1.0  # what had been sent is not lost
    began = time.monotonic()
    with pytest.raises(ConnectionLostError, match="worker 2"):
        mailboxes[0].take(2, (2, "sum"))
    assert time.monotonic() - began > 0.1


def test_a_stranger_who_says_nothing_is_dropped(group, monkeypatch):
    monkeypatch.setattr(sockets, "_CONNECT_SECONDS", 0.2)
    _, listeners = group
    with socket.create_connection(listeners[0].address, 5) as stranger:
        stranger.settimeout(5)
        assert len(stranger.recv(100)) == 32  # the challenge
        assert stranger.recv(100) == b""


@pytest.mark.parametrize(("value", "may"), [("0", True), ("", True), ("1", False), ("true", False)])
def test_where_ray_encrypts_messages_go_through_ray(monkeypatch, value, may):
    monkeypatch.setenv("RAY_USE_TLS", value)
    listener = listen("127.0.0.1", SECRET, Mailbox())
    assert (listener is not None) == may
    if listener is not None:
        listener.close()


def test_where_a_worker_cannot_listen_messages_go_through_ray(caplog):
    assert listen("192.0.2.1", SECRET, Mailbox()) is None  # an address of nobody
    assert "No worker can connect to 192.0.2.1" in caplog.text


def test_other_messages_are_not_arrays():
    assert is_arrays((np.ones(2), np.zeros(0, np.int64)))
    assert not is_arrays([np.ones(2)])
    assert not is_arrays((np.array([None]),))
    assert not is_arrays((np.ones(2), "x"))
