"""Connections between workers: the same bits as through Ray, only for those who know the secret."""

import pickle
import socket
import threading
import time
from contextlib import contextmanager

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
        self.connections = Connections(rank, secret, addresses, mailboxes[rank])

    def send(self, ranks, key, payload):
        for rank in ranks:
            if not (is_arrays(payload) and self.connections.send(rank, key, payload)):
                super().send([rank], key, payload)


@pytest.fixture
def group():
    """Mailboxes and listeners of three workers."""
    mailboxes = [Mailbox() for _ in range(3)]
    listeners = [
        Listener("127.0.0.1", rank, SECRET, mailbox) for rank, mailbox in enumerate(mailboxes)
    ]
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


def test_messages_longer_than_a_chunk_arrive(group, monkeypatch):
    monkeypatch.setattr(sockets, "_CHUNK_BYTES", 1000)
    mailboxes, listeners = group
    sent = np.random.default_rng(0).random(12_345)
    network = SocketNetwork(1, mailboxes, listeners)
    network.send([0], (1, "sum"), (sent, sent[:3]))
    found = mailboxes[0].take(1, (1, "sum"))
    network.connections.close()
    np.testing.assert_array_equal(found[0], sent)
    np.testing.assert_array_equal(found[1], sent[:3])


def addresses_of(listeners):
    return [listener.address for listener in listeners]


def test_whoever_does_not_know_the_secret_is_refused(group, caplog):
    mailboxes, listeners = group
    wrong = Connections(1, b"w" * 32, addresses_of(listeners), mailboxes[1])
    assert not wrong.send(0, (1, "sum"), (np.ones(1),))
    assert list(wrong.failures) == [0]
    assert "refused: it does not know the secret of the group" in caplog.text
    assert not mailboxes[0]._messages
    assert not mailboxes[0]._lost  # its messages go through Ray


def test_a_connection_meant_for_another_worker_is_refused(group, caplog):
    mailboxes, listeners = group
    swapped = Connections(1, SECRET, addresses_of(listeners)[::-1], mailboxes[1])
    assert not swapped.send(0, (1, "sum"), (np.ones(1),))
    assert "refused: it was meant for worker 0" in caplog.text


@contextmanager
def listening(talk):
    """The address of a listener that talks to one connection in another way than ours."""

    def accept():
        with server.accept()[0] as connection:
            talk(connection)

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=accept)
        thread.start()
        yield server.getsockname()
        thread.join()


def test_a_listener_must_know_the_secret_too():
    def pretend(connection):
        connection.sendall(b"n" * 32)
        connection.recv(1000)
        connection.sendall(b"p" * 32)

    with listening(pretend) as address:
        connections = Connections(1, SECRET, [address], Mailbox())
        assert not connections.send(0, (1, "sum"), (np.ones(1),))
    assert "it does not know the secret" in connections.failures[0]


def test_the_proof_of_another_connection_is_refused():
    proofs = []

    def answer(connection):
        connection.sendall(b"n" * 32)
        hello = connection.recv(1000)[:40]
        proofs.append(sockets._proof(SECRET, b"to", b"n" * 32 + hello))
        connection.sendall(proofs[0])  # the second time, what was overheard the first time

    for is_first in (True, False):
        with listening(answer) as address:
            connections = Connections(1, SECRET, [address], Mailbox())
            assert connections.send(0, (1, "sum"), (np.ones(1),)) == is_first
            connections.close()


def test_a_listener_that_does_not_answer_is_a_lost_worker(monkeypatch):
    monkeypatch.setattr(sockets, "_HANDSHAKE_SECONDS", 0.2)

    def say_nothing_more(connection):
        connection.sendall(b"n" * 32)
        while connection.recv(1000):
            pass

    with listening(say_nothing_more) as address:
        connections = Connections(1, SECRET, [address], Mailbox())
        with pytest.raises(ConnectionLostError, match="worker 0 has ended: it did not answer"):
            connections.send(0, (1, "sum"), (np.ones(1),))


def test_where_nobody_can_connect_messages_take_the_other_way():
    mailboxes = [Mailbox() for _ in range(2)]
    addresses = [("127.0.0.1", closed_port()), None]

    def network(rank):
        made = SocketNetwork(rank, mailboxes, [])
        made.connections = Connections(rank, SECRET, addresses, mailboxes[rank])
        return made

    networks = [network(0), network(1)]
    for rank, other in ((0, 1), (1, 0)):
        networks[rank].send([other], (1, "sum"), (np.full(2, rank),))
        np.testing.assert_array_equal(mailboxes[other].take(rank, (1, "sum"))[0], [rank] * 2)
    assert networks[0].connections.failures == {}  # no address: nothing was tried
    assert "127.0.0.1 port" in networks[1].connections.failures[0]


def test_after_three_failures_no_other_worker_is_tried():
    nowhere = ("127.0.0.1", closed_port())
    connections = Connections(0, SECRET, [None, *[nowhere] * 5], Mailbox())
    assert not any(connections.send(rank, (1, "sum"), (np.ones(1),)) for rank in range(1, 6))
    assert list(connections.failures) == [1, 2, 3]


def test_a_lost_connection_is_an_error_after_a_while(group, monkeypatch):
    monkeypatch.setattr(messages, "_LOST_SECONDS", 0.2)
    mailboxes, listeners = group
    network = SocketNetwork(2, mailboxes, listeners)
    network.send([0], (1, "sum"), (np.ones(1),))
    network.connections.close()
    assert mailboxes[0].take(2, (1, "sum"))[0] == 1.0  # what had been sent is not lost
    began = time.monotonic()
    with pytest.raises(ConnectionLostError, match="with worker 2 has ended") as error:
        mailboxes[0].take(2, (2, "sum"))
    assert time.monotonic() - began > 0.1
    assert error.value.rank == 2


def test_what_cannot_be_read_ends_the_connection(group, monkeypatch):
    monkeypatch.setattr(messages, "_LOST_SECONDS", 0.0)
    mailboxes, listeners = group
    network = SocketNetwork(2, mailboxes, listeners)
    network.send([0], (1, "sum"), (np.ones(1),))
    network.connections._open[0].sendall(b"\x01\0\0\0?")
    mailboxes[0].take(2, (1, "sum"))
    with pytest.raises(ConnectionLostError, match="JSONDecodeError"):
        mailboxes[0].take(2, (2, "sum"))
    network.connections.close()


def test_a_sender_notes_that_its_connection_has_ended(monkeypatch):
    monkeypatch.setattr(messages, "_LOST_SECONDS", 0.0)

    def end_early(connection):
        connection.sendall(b"n" * 32)
        hello = connection.recv(1000)[:40]
        connection.sendall(sockets._proof(SECRET, b"to", b"n" * 32 + hello))

    mailbox = Mailbox()
    with listening(end_early) as address:
        connections = Connections(1, SECRET, [address], mailbox)
        for number in range(3):  # the first may still go into a buffer; the last finds it closed
            assert connections.send(0, (number, "sum"), (np.ones(3_000_000),))
    with pytest.raises(ConnectionLostError, match="with worker 0 has ended"):
        mailbox.take(0, (1, "sum"))


def test_a_lost_connection_is_not_taken_for_an_error_of_a_disk():
    error = pickle.loads(pickle.dumps(ConnectionLostError(3, "it was closed")))
    assert error.rank == 3
    assert str(error) == "the connection with worker 3 has ended: it was closed"
    assert not isinstance(error, OSError)


def test_a_closed_listener_leaves_no_thread(caplog):
    before = threading.active_count()
    listener = Listener("127.0.0.1", 0, SECRET, Mailbox())
    assert threading.active_count() == before + 1
    listener.close()
    deadline = time.monotonic() + 10
    while threading.active_count() > before:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(listener.address, 5)
    assert not caplog.text


def test_a_stranger_who_says_nothing_is_dropped(group, monkeypatch):
    monkeypatch.setattr(sockets, "_HANDSHAKE_SECONDS", 0.2)
    _, listeners = group
    with socket.create_connection(listeners[0].address, 5) as stranger:
        stranger.settimeout(5)
        assert len(stranger.recv(100)) == 32  # the challenge
        assert stranger.recv(100) == b""


def has_ipv6():
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


@pytest.mark.skipif(not has_ipv6(), reason="no IPv6 here")
def test_addresses_may_be_those_of_ipv6():
    mailbox = Mailbox()
    listener = Listener("::1", 0, SECRET, mailbox)
    connections = Connections(1, SECRET, [listener.address], Mailbox())
    assert connections.send(0, (1, "sum"), (np.ones(2),))
    np.testing.assert_array_equal(mailbox.take(1, (1, "sum"))[0], [1.0, 1.0])
    connections.close()
    listener.close()


@pytest.mark.parametrize(("value", "may"), [("0", True), ("", True), ("1", False), ("true", False)])
def test_where_ray_encrypts_messages_go_through_ray(monkeypatch, value, may):
    monkeypatch.setenv("RAY_USE_TLS", value)
    listener = listen("127.0.0.1", 0, SECRET, Mailbox())
    assert (listener is not None) == may
    if listener is not None:
        listener.close()


def test_where_a_worker_cannot_listen_messages_go_through_ray(caplog):
    assert listen("192.0.2.1", 0, SECRET, Mailbox()) is None  # an address of nobody
    assert "No worker can connect to 192.0.2.1" in caplog.text


def test_other_messages_are_not_arrays():
    assert is_arrays((np.ones(2), np.zeros(0, np.int64)))
    assert not is_arrays([np.ones(2)])
    assert not is_arrays((np.array([None]),))
    assert not is_arrays((np.ones(2), "x"))
