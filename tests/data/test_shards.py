"""Folders of shards: what is written is what is read, and what is damaged is refused."""

import json
import os
import shutil
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import compute, csv, feather, parquet
from scipy import sparse

from hcpf import Interactions, Shards
from hcpf.data.shards import streaming, writing
from hcpf.data.shards.matrix import JoinedArray
from hcpf.errors import InputError, ParameterError, ShardError
from hcpf.io import locked

pc: Any = compute


def entries(rows: int = 40, columns: int = 12, seed: int = 0, dtype: Any = np.float64) -> Any:
    rng = np.random.default_rng(seed)
    matrix = sparse.random_array((rows, columns), density=0.2, rng=rng, dtype=np.float64)
    matrix.data[:] = rng.gamma(2.0, 1.0, matrix.nnz)
    return matrix.tocsr().astype(dtype)


def same(one: Interactions, other: Interactions) -> None:
    assert one.users.tolist() == other.users.tolist()
    assert one.items.tolist() == other.items.tolist()
    for name in ("indptr", "indices", "data"):
        np.testing.assert_array_equal(getattr(one.matrix, name), getattr(other.matrix, name))


@pytest.fixture
def data() -> Interactions:
    return Interactions.from_matrix(entries(), users=[f"u{j:02d}" for j in range(40)])


@given(
    seed=st.integers(0, 2**32 - 1),
    rows=st.integers(1, 30),
    columns=st.integers(1, 9),
    n_shards=st.integers(1, 7),
    dtype=st.sampled_from([np.float32, np.float64]),
    kind=st.sampled_from(["int", "str", "uuid"]),
)
@settings(deadline=None)
def test_what_is_written_is_read(
    tmp_path_factory: pytest.TempPathFactory, seed: int, rows: int, columns: int, n_shards: int,
    dtype: Any, kind: str,
) -> None:  # fmt: skip
    users: Any = {
        "int": list(range(5, rows + 5)),
        "str": [f"ü{j}" for j in range(rows)],
        "uuid": [uuid.UUID(int=j) for j in range(rows)],
    }[kind]
    data = Interactions.from_matrix(entries(rows, columns, seed, dtype), users=users)
    folder = tmp_path_factory.mktemp("shards") / "folder"
    written = data.to_shards(folder, n_shards=n_shards)
    shards = Shards.open(folder)
    assert shards.digest == written.digest
    assert shards.n_shards == min(n_shards, rows)
    assert shards.shape == data.shape
    assert shards.n_observed == data.n_observed
    same(shards.to_memory(), data)
    _by_item_is_the_transpose(shards)
    summary = shards.summary
    assert summary.n == data.n_observed
    if data.n_observed:
        assert (summary.low, summary.high) == (data.values.min(), data.values.max())
        assert summary.total == pytest.approx(float(data.values.sum(dtype=np.float64)))
    shutil.rmtree(folder)


def _by_item_is_the_transpose(shards: Shards) -> None:
    for number in range(shards.n_shards):
        matrix, users = shards.part([number])
        rows: Any = matrix[np.arange(matrix.shape[0])]
        turned, arrays = rows.T.tocsr(), matrix.shards[0]
        np.testing.assert_array_equal(arrays.item_pointer, turned.indptr)
        np.testing.assert_array_equal(arrays.item_index, turned.indices)
        np.testing.assert_array_equal(arrays.item_value, turned.data)
        assert len(users) == matrix.shape[0]


def test_items_in_several_blocks(
    data: Interactions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "ITEM_BLOCK_ENTRIES", 7)
    monkeypatch.setattr(writing, "CHUNK_ENTRIES", 5)
    shards = data.to_shards(tmp_path / "s", n_shards=2)
    same(shards.to_memory(), data)
    _by_item_is_the_transpose(shards)


def test_shards_are_balanced_by_entries(tmp_path: Path) -> None:
    matrix = entries(500, 40)
    shards = Interactions.from_matrix(matrix).to_shards(tmp_path / "s", n_shards=4)
    sizes = [shard.n_entries for shard in shards.manifest.shards]
    assert max(sizes) < 1.1 * matrix.nnz / 4


@given(st.lists(st.integers(0, 20), min_size=1, max_size=12), st.integers(1, 15))
def test_every_shard_has_a_user(sizes: list[int], n_shards: int) -> None:
    cuts = writing.balanced_cuts(np.array(sizes), n_shards)
    assert (cuts[0], cuts[-1]) == (0, len(sizes))
    assert np.all(np.diff(cuts) > 0)
    assert len(cuts) == min(n_shards, len(sizes)) + 1


def test_a_part_has_the_numbers_of_its_users(data: Interactions, tmp_path: Path) -> None:
    shards = data.to_shards(tmp_path / "s", n_shards=3)
    matrix, numbers = shards.part([0, 2])
    np.testing.assert_array_equal(matrix[np.arange(len(numbers))].toarray(),
                                  data.matrix[numbers].toarray())  # fmt: skip
    with pytest.raises(ParameterError, match="ascending numbers from 0 to 2"):
        shards.part([2, 0])


def test_append_adds_users_and_items(data: Interactions, tmp_path: Path) -> None:
    more = Interactions.from_matrix(
        entries(15, 10, seed=1), users=[f"v{j:02d}" for j in range(15)], items=range(7, 17)
    )
    data.to_shards(tmp_path / "s", n_shards=2)
    shards = more.to_shards(tmp_path / "s", append=True)
    assert (shards.n_shards, shards.shape) == (3, (55, 17))
    same(shards.to_memory(), Shards.open(tmp_path / "s").to_memory())
    everything = shards.to_memory()
    np.testing.assert_array_equal(everything.matrix[:40, :12].toarray(), data.matrix.toarray())
    np.testing.assert_array_equal(everything.matrix[40:, 7:].toarray(), more.matrix.toarray())
    _by_item_is_the_transpose(Shards.open(tmp_path / "s"))
    assert shards.summary.n == data.n_observed + more.n_observed


def test_known_users_cannot_be_appended(data: Interactions, tmp_path: Path) -> None:
    data.to_shards(tmp_path / "s")
    before = _content(tmp_path / "s")
    with pytest.raises(ShardError, match=r"40 users are in .* already, for example 'u00'"):
        data.to_shards(tmp_path / "s", append=True)
    assert _content(tmp_path / "s") == before


def test_values_that_need_more_room_cannot_be_appended(tmp_path: Path) -> None:
    Interactions.from_matrix(entries(dtype=np.float32)).to_shards(tmp_path / "s")
    more = Interactions.from_matrix(entries(), users=range(100, 140))
    with pytest.raises(ShardError, match="need float64"):
        more.to_shards(tmp_path / "s", append=True)


def _content(folder: Path) -> dict[str, bytes]:
    return {str(file): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


# -- damage ---------------------------------------------------------------------------------------


def _do_nothing(folder: Path) -> None:
    pass


def test_an_interrupted_write_is_not_a_folder_of_shards(
    data: Interactions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(writing.FolderWriter, "commit", stop)
        with pytest.raises(KeyboardInterrupt):
            data.to_shards(tmp_path / "s")
        assert not (tmp_path / "s").exists()
        patch.setattr(writing, "_remove_uncommitted", _do_nothing)  # killed: no clean-up
        with pytest.raises(KeyboardInterrupt):
            data.to_shards(tmp_path / "s")
    with pytest.raises(ShardError, match="writing it was interrupted"):
        Shards.open(tmp_path / "s")
    same(data.to_shards(tmp_path / "s").to_memory(), data)


def test_an_interrupted_append_leaves_the_shards(
    data: Interactions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    data.to_shards(tmp_path / "s")
    before = _content(tmp_path / "s")
    more = Interactions.from_matrix(entries(), users=[f"v{j:02d}" for j in range(40)])
    with monkeypatch.context() as patch:
        patch.setattr(writing, "write_by_item", stop)
        with pytest.raises(ShardError, match=r"cannot be written to .*: No space left on device"):
            more.to_shards(tmp_path / "s", append=True)
    assert _content(tmp_path / "s") == before
    assert more.to_shards(tmp_path / "s", append=True).n_users == 80


def test_two_writers_are_refused(data: Interactions, tmp_path: Path) -> None:
    pytest.importorskip("fcntl")
    folder = tmp_path / "s"
    folder.mkdir()
    with locked(folder), pytest.raises(ShardError, match="Another process writes shards to"):
        data.to_shards(folder)
    assert data.to_shards(folder).n_users == 40


def test_a_folder_is_not_overwritten(data: Interactions, tmp_path: Path) -> None:
    data.to_shards(tmp_path / "s")
    with pytest.raises(ShardError, match=r"contains shards already\. Pass append=True"):
        data.to_shards(tmp_path / "s")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.tex").write_text("years of work")
    with pytest.raises(ShardError, match=r"contains other files, for example thesis\.tex"):
        data.to_shards(tmp_path / "other")
    with pytest.raises(ShardError, match="has no shards to append to"):
        data.to_shards(tmp_path / "new", append=True)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("name", ["index.npy", "item_value.npy", "users.parquet", "pointer.npy"])
def test_damaged_shards_are_refused(data: Interactions, tmp_path: Path, name: str) -> None:
    folder = tmp_path / "s"
    data.to_shards(folder, n_shards=2)
    file = folder / "shard-0001" / name
    whole = file.read_bytes()
    file.write_bytes(whole[:-1])
    with pytest.raises(ShardError, match=f"{name} has .* bytes, but .* it was truncated or change"):
        Shards.open(folder, check=False)
    file.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(ShardError, match=f"{name} does not match its checksum"):
        Shards.open(folder)
    file.unlink()
    with pytest.raises(ShardError, match=f"{name} is missing, but the folder's manifest lists it"):
        Shards.open(folder)
    file.write_bytes(whole)
    same(Shards.open(folder).to_memory(), data)


def test_shards_of_another_folder_are_refused(data: Interactions, tmp_path: Path) -> None:
    other = Interactions.from_matrix(entries(seed=5), users=data.users)
    for name, source in (("a", data), ("b", other)):
        source.to_shards(tmp_path / name, n_shards=2)
    shutil.rmtree(tmp_path / "a" / "shard-0000")
    shutil.copytree(tmp_path / "b" / "shard-0000", tmp_path / "a" / "shard-0000")
    with pytest.raises(ShardError, match=r"changed, or it belongs to other shards|was truncated"):
        Shards.open(tmp_path / "a")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "cannot be read"),
        ("[]", "was not written by hcpf"),
        ('{"manifest": {"format": "hcpf-model"}}', "does not describe shards"),
        ('{"manifest": {"format": "hcpf-shards", "schema": 9}}', "has schema 9"),
        ('{"manifest": {"format": "hcpf-shards", "schema": 1}}', "does not match its checksum"),
    ],
)
def test_other_manifests_are_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(ShardError, match=message):
        Shards.open(tmp_path)


def test_other_paths_are_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for name, message in (("none", "does not exist"), ("file", "is a file"), (".", "has no manif")):
        with pytest.raises(ShardError, match=message):
            Shards.open(tmp_path / name)
    with pytest.raises(ParameterError, match="folder must be a path"):
        Shards.open(3)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("convert", [str, Path])
def test_urls_are_refused(data: Interactions, convert: Any) -> None:
    url = convert("s3://bucket/folder")
    for use in (Shards.open, data.to_shards):
        with pytest.raises(ParameterError, match=r"must be a path on a mounted disk.*'s3:/"):
            use(url)


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write anywhere")
def test_no_permission_is_a_clear_error(data: Interactions, tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(ShardError, match=r"cannot be written to .*: Permission denied"):
        data.to_shards(tmp_path / "s")
    tmp_path.chmod(0o700)


def test_manifest_has_sizes_and_summary(data: Interactions, tmp_path: Path) -> None:
    data.to_shards(tmp_path / "s")
    content = json.loads((tmp_path / "s" / "manifest.json").read_text())["manifest"]
    assert (content["n_users"], content["n_items"]) == data.shape
    assert content["summary"]["n"] == content["n_entries"] == data.n_observed


# -- the matrix -----------------------------------------------------------------------------------


def test_what_needs_memory_says_so(data: Interactions, tmp_path: Path) -> None:
    matrix = data.to_shards(tmp_path / "s", n_shards=2).matrix
    values = matrix.data
    uses: list[Callable[[], Any]] = [
        lambda: matrix.tocsc(),
        lambda: matrix[:, 0],
        lambda: np.asarray(values),
        lambda: values.astype(np.float64),
        lambda: values == 1.0,
        lambda: 2.0 * values,
        lambda: np.log(values),
        lambda: 1.0 in values,
        lambda: values[np.ones(len(values), np.bool_)],
    ]
    for use in uses:
        with pytest.raises(InputError, match="requires the entries in memory"):
            use()
    assert not hasattr(matrix, "toarray")
    with pytest.raises(IndexError, match="out of range"):
        values[len(values)]


@given(
    sizes=st.lists(st.integers(0, 5), min_size=1, max_size=4),
    key=st.tuples(*[st.none() | st.integers(-22, 22)] * 2, st.none() | st.integers(1, 4)),
)
def test_joined_arrays_read_as_one(sizes: list[int], key: Any) -> None:
    whole = np.arange(sum(sizes))
    joined = JoinedArray(np.split(whole, np.cumsum(sizes)[:-1]))
    np.testing.assert_array_equal(joined[slice(*key)], whole[slice(*key)])
    positions = whole[::-2] - len(whole)
    np.testing.assert_array_equal(joined[positions], whole[positions])
    assert len(joined) == joined.size == joined.shape[0] == len(whole)


def test_samples_are_users_with_all_their_entries(data: Interactions, tmp_path: Path) -> None:
    sample = data.to_shards(tmp_path / "s", n_shards=3).sample(30, random_state=0)
    assert 0 < sample.n_observed <= 30
    rows = np.searchsorted(data.users.astype(str), sample.users.astype(str))
    np.testing.assert_array_equal(sample.matrix.toarray(), data.matrix[rows].toarray())


# -- from tables ----------------------------------------------------------------------------------


def _table(seed: int = 0, n_rows: int = 400, *, repeated: bool = True) -> Any:
    rng = np.random.default_rng(seed)
    users, items = rng.integers(30, 90, n_rows), rng.integers(0, 12, n_rows)
    if not repeated:
        pairs = np.unique(np.stack([users, items]), axis=1)
        users, items = pairs[:, rng.permutation(pairs.shape[1])]
    values = rng.gamma(2.0, 3.0, len(users)).round(2)
    return pa.table({"user": users, "item": [f"i{j}" for j in items], "spend": values})


@pytest.fixture
def small_buckets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "BUCKET_ROWS", 60)
    monkeypatch.setattr(streaming, "SPOOL_ROWS", 130)


COLUMNS: dict[str, Any] = {"user": "user", "item": "item", "value": "spend"}


@pytest.mark.usefixtures("small_buckets")
@pytest.mark.parametrize("ending", [".parquet", ".arrow", ".csv"])
@pytest.mark.parametrize("duplicates", ["error", "sum", "mean", "last"])
def test_tables_are_streamed_as_they_are_read(tmp_path: Path, ending: str, duplicates: Any) -> None:
    for number in range(2):
        table = _table(number, repeated=duplicates != "error")
        older = pc.less(table["user"], 60)
        table = table.filter(older if number else pc.invert(older))
        file = tmp_path / f"part-{number}{ending}"
        if ending == ".parquet":
            parquet.write_table(table, file)
        elif ending == ".csv":
            csv.write_csv(table, file)
        else:
            feather.write_feather(table, file)
    files = str(tmp_path / f"part-*{ending}")
    expected = Interactions.read(files, **COLUMNS, duplicates=duplicates)
    shards = Shards.from_files(
        files, tmp_path / "s", **COLUMNS, duplicates=duplicates, n_shards=3, progress=False
    )
    same(shards.to_memory(), expected)
    assert shards.n_shards == 3
    assert sorted(path.name for path in (tmp_path / "s").iterdir()) == [
        "items-0003.parquet", "manifest.json", "shard-0000", "shard-0001", "shard-0002"
    ]  # fmt: skip


def test_folders_of_spark_are_read(tmp_path: Path) -> None:
    folder = tmp_path / "sales.parquet"
    for number, country in enumerate(("DE", "FR")):
        (folder / f"country={country}").mkdir(parents=True)
        table = _table(number, repeated=False)
        table = table.filter(pc.equal(pc.bit_wise_and(table["user"], 1), number))
        parquet.write_table(table, folder / f"country={country}" / "part-00000.snappy.parquet")
    (folder / "_SUCCESS").touch()
    (folder / "._SUCCESS.crc").touch()
    shards = Shards.from_files(folder, tmp_path / "s", **COLUMNS, progress=False)
    same(shards.to_memory(), Interactions.read(folder, **COLUMNS))


def test_integers_are_stored_as_float32(tmp_path: Path) -> None:
    table = pa.table({"user": [1, 1, 2], "item": [5, 5, 6], "n": [1, 2, 3]})
    parquet.write_table(table, tmp_path / "t.parquet")
    shards = Shards.from_files(
        tmp_path / "t.parquet", tmp_path / "s", user="user", item="item", value="n",
        duplicates="sum", progress=False,
    )  # fmt: skip
    assert shards.matrix.dtype == np.float32
    assert shards.to_memory().values.tolist() == [3.0, 3.0]


def test_rows_are_dropped_as_in_memory(tmp_path: Path) -> None:
    table = pa.table(
        {"user": ["a", "", "b", "b", "c"], "item": ["x", "x", "POST", "y", "y"],
         "price": [3.5, 1.0, 2.0, 4.0, -4.0]}
    )  # fmt: skip
    csv.write_csv(table, tmp_path / "t.csv")
    options: dict[str, Any] = {
        "user": "user", "item": "item", "value": "price", "drop_blank_ids": True,
        "exclude_items": "POST", "returns": "drop",
    }  # fmt: skip
    shards = Shards.from_files(tmp_path / "t.csv", tmp_path / "s", **options, progress=False)
    same(shards.to_memory(), Interactions.read(tmp_path / "t.csv", **options))


RETURNS = "who,what,x\na,x,0\na,y,3\nb,x,2\nb,y,-2\nb,y,2\nb,z,4\nc,x,-1\nc,z,1\n"


@pytest.mark.usefixtures("small_buckets")
@pytest.mark.parametrize("returns", ["auto", "net", "drop", "keep"])
def test_returns_are_settled_as_in_memory(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, returns: Any
) -> None:
    (tmp_path / "t.csv").write_text(RETURNS)
    options: dict[str, Any] = {
        "user": "who", "item": "what", "value": "x", "duplicates": "sum", "returns": returns,
        "progress": False,
    }  # fmt: skip
    caplog.set_level("INFO", "hcpf")
    expected = Interactions.read(tmp_path / "t.csv", **options)
    said = caplog.messages[:]
    caplog.clear()
    same(Shards.from_files(tmp_path / "t.csv", tmp_path / "s", **options).to_memory(), expected)
    assert caplog.messages == said
    assert bool(said) == (returns != "keep")


@pytest.mark.parametrize("blank_id", [False, True])
def test_ids_of_dropped_rows_are_dropped_as_in_memory(tmp_path: Path, blank_id: bool) -> None:
    rows = "who,what,x\na,x,1\nb,x,-2\nc,y,\n" + ",x,1\n" * blank_id
    (tmp_path / "t.csv").write_text(rows)
    options: dict[str, Any] = {
        "user": "who", "item": "what", "value": "x", "returns": "drop", "drop_blank_ids": True,
        "drop_blank_values": True, "progress": False,
    }  # fmt: skip
    shards = Shards.from_files(tmp_path / "t.csv", tmp_path / "s", **options)
    same(shards.to_memory(), Interactions.read(tmp_path / "t.csv", **options))
    assert shards.users.tolist() == ["a"]


@pytest.mark.usefixtures("small_buckets")
def test_decisions_are_told_as_in_memory(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    rows = "who,day,what,paid\n" + "".join(
        f"u{j % 40},2024-01-{j % 28 + 1:02},i{j % 7},£{j % 5 + 1}.50\n" for j in range(300)
    )
    (tmp_path / "t.csv").write_text(rows)
    options: dict[str, Any] = {
        "user": "who",
        "item": "what",
        "value": "paid",
        "decimal": ".",
        "progress": False,
    }
    caplog.set_level("INFO", "hcpf")
    expected = Interactions.read(tmp_path / "t.csv", **options)
    said = caplog.messages[:]
    caplog.clear()
    same(Shards.from_files(tmp_path / "t.csv", tmp_path / "s", **options).to_memory(), expected)
    assert caplog.messages == said
    assert "read as money" in said[0]
    assert "Summed the rows of repeated pairs (300 rows, 280 pairs)" in said[1]


@pytest.mark.parametrize(
    ("text", "more"),
    [
        (RETURNS.replace(",x\n", ",price\n", 1), {"value": "price"}),
        (RETURNS.replace("x,2", "x,2 EUR"), {"value": "x"}),
        (RETURNS, {"value": "x", "returns": "error"}),
        ("who,what,x\na,x,1\na,x,-2\nb,y,-1\n", {"value": "x", "returns": "net"}),
        ("who,what,x\na,x,-2\nb,y,-1\n", {"value": "x", "returns": "drop"}),
    ],
)
def test_returns_are_refused_as_in_memory(tmp_path: Path, text: str, more: Any) -> None:
    (tmp_path / "t.csv").write_text(text)
    options: dict[str, Any] = {"user": "who", "item": "what", "decimal": ".", "progress": False}
    options |= more
    with pytest.raises(InputError) as one:
        Interactions.read(tmp_path / "t.csv", **options)
    with pytest.raises(InputError) as other:
        Shards.from_files(tmp_path / "t.csv", tmp_path / "s", **options)
    assert str(one.value).removeprefix(f"{tmp_path / 't.csv'}: ") in str(other.value)
    assert not (tmp_path / "s").exists()


def test_rows_without_a_value_are_dropped_as_in_memory(tmp_path: Path) -> None:
    table = pa.table({"user": ["a", "b", "b"], "item": ["x", "x", "y"], "price": [3.5, None, 4.0]})
    parquet.write_table(table, tmp_path / "t.parquet")
    columns: dict[str, Any] = {"user": "user", "item": "item", "value": "price"}
    with pytest.raises(InputError, match=r"no value in row 2.*drop_blank_values=True"):
        Shards.from_files(tmp_path / "t.parquet", tmp_path / "r", **columns, progress=False)
    columns["drop_blank_values"] = True
    shards = Shards.from_files(tmp_path / "t.parquet", tmp_path / "s", **columns, progress=False)
    same(shards.to_memory(), Interactions.read(tmp_path / "t.parquet", **columns))


def test_bad_rows_and_repeated_pairs_are_named(tmp_path: Path) -> None:
    table = pa.table({"user": [1, 2, 2], "item": [5, 6, 6], "spend": [1.0, 2.0, 3.0]})
    parquet.write_table(table, tmp_path / "twice.parquet")
    with pytest.raises(InputError, match="user 2 and item 6 is stored more than once"):
        Shards.from_files(tmp_path / "twice.parquet", tmp_path / "s", **COLUMNS, progress=False)
    (tmp_path / "bad.csv").write_text("user,item,spend\n1,2,3\n1,3,oops\n")
    with pytest.raises(InputError, match="'oops' in row 3"):
        Shards.from_files(tmp_path / "bad.csv", tmp_path / "s", **COLUMNS, progress=False)
    assert not (tmp_path / "s").exists()


def test_tables_are_appended(tmp_path: Path) -> None:
    table = _table(0, repeated=False)
    older = pc.less(table["user"], 60)
    for name, part in (("old", older), ("new", pc.invert(older))):
        parquet.write_table(table.filter(part), tmp_path / f"{name}.parquet")
        Shards.from_files(
            tmp_path / f"{name}.parquet", tmp_path / "s", **COLUMNS,
            append=name == "new", progress=False,
        )  # fmt: skip
    parquet.write_table(table, tmp_path / "all.parquet")
    shards = Shards.open(tmp_path / "s").to_memory()
    expected = Interactions.read(tmp_path / "all.parquet", **COLUMNS)
    assert shards.users.tolist() == expected.users.tolist()
    columns = np.argsort(shards.items.astype(str))
    np.testing.assert_array_equal(shards.matrix.toarray()[:, columns], expected.matrix.toarray())
