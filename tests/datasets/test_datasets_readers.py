"""Every reader reads its published format, plain and packed."""

import gzip
import io
import subprocess
import sys
import tarfile
import zipfile

import numpy as np
import pyarrow.parquet as pq
import pytest

from datasets.published_formats import DONATIONS_2014, FORMATS, MERCK
from hcpf import datasets
from hcpf.errors import InputError

READERS = sorted({one.reader for one in FORMATS})


def read(one, path):
    return getattr(datasets, one.reader)(path, **one.options)


def entries(data):
    found = data.matrix.tocoo()
    users, items = data.users[found.row].tolist(), data.items[found.col].tolist()
    return set(zip(users, items, found.data.tolist(), strict=True))


def zipped(path, *files):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files:
            archive.writestr(name, content)
    return path


def tarred(*files):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, content in files:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


def test_every_reader_has_a_format():
    others = {"download", "downloads", "retail", "retail_products"}
    assert set(READERS) == set(datasets.__all__) - others


NOT_FOUND_BY_NAME = ("trainPosts", "user_action", "gifts")


@pytest.mark.parametrize("one", FORMATS, ids=str)
def test_published_format_plain_packed_and_in_archives(one, tmp_path):
    folder = tmp_path / "folder" / "inner"
    folder.mkdir(parents=True)
    expected = entries(read(one, one.write(folder)))
    values = {entry[:2]: entry[2] for entry in one.entries}
    assert {entry[:2]: entry[2] for entry in expected} == pytest.approx(values, rel=1e-15)

    content = one.text.encode(one.encoding)
    packed = tmp_path / f"{one.name}.gz"
    packed.write_bytes(gzip.compress(content))
    assert entries(read(one, packed)) == expected
    if one.name.startswith(NOT_FOUND_BY_NAME):
        return
    (folder / "readme.html").write_text("read me")
    assert entries(read(one, str(tmp_path / "folder"))) == expected
    path = zipped(
        tmp_path / "published.ZIP",
        (f"set/{one.name}", content),
        ("set/README.txt", b"read me"),
        (f"__MACOSX/set/._{one.name}", b"\0"),
    )
    assert entries(read(one, path)) == expected


def test_netflix_archives_within_archives(tmp_path):
    films = [(f"training_set/mv_000000{j}.txt", f"{j}:\n7,{j},2005-09-06\n") for j in (1, 2, 3)]
    inner = tarred(*((name, text.encode()) for name, text in films))
    path = tmp_path / "nf_prize_dataset.tar.gz"
    outer = tarred(("download/README", b"x"), ("download/training_set.tar", inner))
    path.write_bytes(gzip.compress(outer))
    assert entries(datasets.netflix(path)) == {(7, 1, 1.0), (7, 2, 2.0), (7, 3, 3.0)}


def test_netflix_chunks_do_not_matter(tmp_path, monkeypatch, rng):
    from hcpf.datasets import layouts

    drawn = {(int(u), int(f)): int(r) for u, f, r in rng.integers(1, 6, (60, 3))}
    text = ""
    for film in range(1, 6):
        rows = [f"{u},{r},2005-01-01\n" for (u, f), r in drawn.items() if f == film]
        text += f"{film}:\n" + "".join(rows)
    path = tmp_path / "combined_data_1.txt"
    path.write_text(text)
    expected = {(u, f, r) for (u, f), r in drawn.items()}
    assert len(expected) > 15
    for size in (1, 7, 64, 1 << 20):
        monkeypatch.setattr(layouts, "_BLOCK_BYTES", size)
        assert entries(datasets.netflix(path)) == expected


def test_merck_joins_files_with_different_descriptors(tmp_path):
    (tmp_path / "ACT1_competition_training.csv").write_text(MERCK)
    (tmp_path / "ACT2_competition_training.csv").write_text(
        "MOLECULE,Act,D_6,D_9\nACT2_M_1,1.5,3,0\nACT2_M_2,1.5,0,4\n"
    )
    data = datasets.merck(tmp_path)
    assert data.items.tolist() == ["D_4", "D_5", "D_6", "D_9"]
    assert entries(data) == {
        ("ACT1_M_80", "D_5", 2.0), ("ACT1_M_189", "D_4", 1.0), ("ACT1_M_189", "D_6", 11.0),
        ("ACT2_M_1", "D_6", 3.0), ("ACT2_M_2", "D_9", 4.0),
    }  # fmt: skip


def test_merck_batches_do_not_matter(tmp_path, monkeypatch, rng):
    from hcpf.datasets import layouts

    counts = rng.poisson(0.4, (300, 12))
    names = [f"D_{j}" for j in range(12)]
    rows = [f"M_{i},1.0," + ",".join(map(str, row)) for i, row in enumerate(counts)]
    path = tmp_path / "ACT1_training.csv"
    path.write_text("\n".join(["MOLECULE,Act," + ",".join(names), *rows]))
    monkeypatch.setattr(layouts, "_BLOCK_BYTES", 512)
    data = datasets.merck(path)
    order = [int(user.removeprefix("M_")) for user in data.users]
    by_item = [int(item.removeprefix("D_")) for item in data.items]
    np.testing.assert_array_equal(data.matrix.toarray(), counts[order][:, by_item])


def test_line_ends_within_text_where_a_block_ends(tmp_path, monkeypatch):
    from hcpf.datasets import layouts

    monkeypatch.setattr(layouts, "_BLOCK_BYTES", 200)
    rows = [
        f'd{j},p{j},a{j},,1.0,{j + 1}.0,"one,\ntwo,\n{"three," * (j % 20)}"\n' for j in range(99)
    ]
    path = tmp_path / "donations.csv"
    path.write_text(DONATIONS_2014.splitlines(keepends=True)[0] + "".join(rows))
    data = datasets.donorschoose(path)
    assert entries(data) == {(f"a{j}", f"p{j}", j + 1.0) for j in range(99)}


DUPLICATES = [
    ("movielens", "ratings.dat", "1::2::5::9\n1::2::3::10\n", "error"),
    ("netflix", "mv_1.txt", "2:\n1,5,2005-01-01\n1,3,2005-01-02\n", "error"),
    ("yelp", "review.json", '{"user_id":"1","business_id":"2","stars":5}\n'
                            '{"user_id":"1","business_id":"2","stars":3}\n', "last"),
    ("echonest", "t.txt", "1\t2\t5\n1\t2\t3\n", "sum"),
    ("steam", "s.csv", "1,2,play,5.0,0\n1,2,play,3.0,0\n", "sum"),
    ("donations", "d.csv", "donor,recipient,amount\n1,2,5\n1,2,3\n", "sum"),
    ("merck", "m.csv", "MOLECULE,Act,2\n1,0,5\n1,0,3\n", "error"),
    ("geuvadis", "g.txt",
     "TargetID\tGene_Symbol\tChr\tCoord\t2\n1\t\t\t\t5\n1\t\t\t\t3\n", "error"),
]  # fmt: skip


@pytest.mark.parametrize(("reader", "name", "text", "default"), DUPLICATES)
def test_duplicates(reader, name, text, default, tmp_path):
    path = tmp_path / name
    path.write_text(text)
    function = getattr(datasets, reader)
    merged = {"sum": [8.0], "mean": [4.0], "last": [3.0]}
    for duplicates, expected in merged.items():
        assert function(path, duplicates=duplicates).values.tolist() == expected
    with pytest.raises(InputError, match=f"{name}.*more than once"):
        function(path, duplicates="error")
    if default == "error":
        with pytest.raises(InputError, match="more than once"):
            function(path)
    else:
        assert function(path).values.tolist() == merged[default]


def test_dropped_rows_are_logged(tmp_path, caplog):
    path = tmp_path / "donations.csv"
    path.write_text(DONATIONS_2014)
    with caplog.at_level("INFO", logger="hcpf"):
        datasets.donorschoose(path)
    assert f"{path}: dropped 1 rows." in caplog.messages


@pytest.mark.parametrize(
    ("set_name", "write", "reader"),
    [
        ("ml100k", "{user}\t{item}\t{value:g}\t881250949\n", "movielens"),
        ("steam_hours", '{user},"game, {item}",play,{value!r},0\n', "steam"),
        ("echonest_43k", "u{user}\tS{item}\t{value:g}\n", "echonest"),
    ],
)
def test_real_values_in_the_published_format(set_name, write, reader, shared_data, tmp_path):
    table = pq.read_table(shared_data / set_name / f"{set_name}.parquet")
    path = tmp_path / "file.txt"
    path.write_text("".join(write.format(**row) for row in table.to_pylist()))
    data = getattr(datasets, reader)(path)
    assert data.n_observed == table.num_rows
    assert data.values.sum() == pytest.approx(
        np.sum(table["value"].to_numpy(), dtype=float), rel=1e-12
    )


def test_import_is_cheap():
    code = (
        "import sys, hcpf.datasets; "
        "assert not {'pyarrow', 'narwhals', 'numba', 'sklearn', 'rich'} & set(sys.modules); "
        "assert hcpf.datasets.retail.__name__ == 'retail'; "
        "assert 'movielens' in dir(hcpf.datasets)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_unknown_name():
    with pytest.raises(AttributeError, match="no attribute 'jester'"):
        _ = datasets.jester
