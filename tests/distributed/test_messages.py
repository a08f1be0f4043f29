"""The collective over messages: the same bits as the threads' one, directly and along a tree."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hcpf.core.collective import row_block
from hcpf.distributed import messages
from hcpf.distributed.messages import Mailbox, MessageCollective, children_of, parent_of
from hcpf.errors import ClusterError
from training.test_collective import assert_equal_to_the_bit, prepare
from training.workers import run_together


class ThreadNetwork:
    """Carries messages between threads; arrays arrive as read-only copies, as Ray delivers them."""

    def __init__(self, rank, mailboxes):
        self.rank, self.size, self._mailboxes = rank, len(mailboxes), mailboxes

    def send(self, ranks, key, payload):
        for rank in ranks:
            self._mailboxes[rank].put(self.rank, key, _frozen(payload))

    def receive(self, rank, key):
        return self._mailboxes[self.rank].take(rank, key)

    def share(self, array):
        return _frozen(array)

    def fetch(self, handle):
        return handle


def _frozen(payload):
    if not isinstance(payload, np.ndarray):
        return payload
    copy = payload.copy()
    copy.flags.writeable = False
    return copy


def run_all(size, work):
    """What each of some workers returns, given its collective."""
    mailboxes = [Mailbox() for _ in range(size)]

    def start(rank):
        return work(MessageCollective(ThreadNetwork(rank, mailboxes)))

    with ThreadPoolExecutor(size) as pool:
        return list(pool.map(start, range(size)))


@pytest.fixture(params=["direct", "tree"])
def route(request, monkeypatch):
    if request.param == "tree":
        monkeypatch.setattr(messages, "MAX_DIRECT", 1)
        monkeypatch.setattr(messages, "_BRANCHES", 2)
    return request.param


@pytest.mark.parametrize("size", [2, 3, 7])
@pytest.mark.parametrize("n_rows", [1, 5, 20_000])
def test_all_four_calls_add_up_in_rank_order(route, size, n_rows):
    rng = np.random.default_rng(n_rows)
    arrays = rng.standard_normal((size, n_rows, 3)) * 10.0 ** rng.integers(-8, 8, (size, 1, 1))
    total = arrays[0]
    for other in arrays[1:]:
        total = total + other

    def work(comm):
        x = arrays[comm.rank]
        return comm.sum(x), comm.max(x), comm.gather(x[: comm.rank + 1]), comm.sum_rows(x)[0]

    for rank, (added, largest, gathered, own) in enumerate(run_all(size, work)):
        np.testing.assert_array_equal(added, total)
        np.testing.assert_array_equal(largest, arrays.max(axis=0))
        np.testing.assert_array_equal(
            gathered, np.concatenate([x[: j + 1] for j, x in enumerate(arrays)])
        )
        np.testing.assert_array_equal(own, total[row_block(rank, size, n_rows)])
        assert all(found.flags.writeable for found in (added, largest, gathered, own))


@given(st.integers(1, 2000))
def test_the_tree_reaches_every_worker_once(size):
    children = {rank: children_of(rank, size) for rank in range(size)}
    assert sorted(child for below in children.values() for child in below) == list(range(1, size))
    for rank, below in children.items():
        assert all(parent_of(child) == rank for child in below)


def test_no_worker_is_sent_more_than_its_rows(route):
    size, rows = 5, 40_000

    def work(comm):
        comm.sum_rows(np.ones((rows, 2)))
        return comm.bytes_sent

    assert run_all(size, work) == [rows * 2 * 8 * (size - 1) // size] * size


@pytest.mark.parametrize("case", [{"vary_by": "both"}, {"solver": "svi"}, {"validation": 0.2}])
def test_a_fit_has_the_bits_of_the_thread_collective(route, case):
    shared = prepare("gamma", passes=6, **case)
    mailboxes = [Mailbox() for _ in range(3)]

    def make_comm(meeting, rank, max_calls):
        return MessageCollective(ThreadNetwork(rank, mailboxes))

    expected = run_together(*shared, 3)
    assert_equal_to_the_bit(run_together(*shared, 3, make_comm=make_comm), expected)


def test_workers_that_do_not_run_the_same_code_are_told_so():
    mailbox = Mailbox()
    mailbox.put(1, (4, "gather"), np.zeros(1))
    with pytest.raises(ClusterError, match="Worker 1 is at call 4 in gather, not in sum"):
        mailbox.take(1, (4, "sum"))


def test_a_message_is_waited_for():
    mailbox = Mailbox()
    timer = threading.Timer(0.05, mailbox.put, (2, (1, "sum"), "late"))
    timer.start()
    assert mailbox.take(2, (1, "sum")) == "late"
