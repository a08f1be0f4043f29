"""Folders of shards and clusters from the command line: one line says what is wrong with them."""

import json
import shutil

import pytest

from hcpf import HCPF, Shards, simulate
from hcpf.elements import Gamma


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "shards"
    simulate(60, 20, density=0.2, element=Gamma(2.0, 1.0), random_state=0).interactions.to_shards(
        path, n_shards=3
    )
    return path


def lose_manifest(folder):
    (folder / "manifest.json").unlink()


def cut_manifest(folder):
    path = folder / "manifest.json"
    path.write_text(path.read_text()[:-300])


def lose_shard(folder):
    shutil.rmtree(folder / "shard-0001")


def change_value(folder):
    path = folder / "shard-0001" / "value.npy"
    content = bytearray(path.read_bytes())
    content[-3] ^= 16
    path.write_bytes(content)


def claim_more_users(folder):
    path = folder / "manifest.json"
    content = json.loads(path.read_text())
    content["manifest"]["n_users"] += 1
    path.write_text(json.dumps(content))


@pytest.mark.parametrize("command", [["info"], ["fit", "--output", "model"]])
@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lose_manifest, "writing it was interrupted, so it has no manifest.json. Write the shards"),
        (cut_manifest, "Restore the file, or write the shards again."),
        (lose_shard, "shard-0001/pointer.npy is missing, but the folder's manifest lists it."),
        (change_value, "shard-0001/value.npy does not match its checksum: it was changed, or it"),
        (claim_more_users, "manifest.json does not match its checksum. Write the shards again."),
    ],
)
def test_a_damaged_folder(run, folder, tmp_path, command, damage, message):
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    damage(copy)
    result = run([command[0], str(copy), *command[1:]])
    assert result.exit_code == 1
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"hcpf: {copy}")
    assert message in line


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--workers", "2"], "--workers 2 requires --engine ray: the local engine has one worker"),
        (["--address", "a:1"], "--address a:1 requires --engine ray"),
        (["--engine", "ray", "--address", "ray://a:1"], "--address ray://a:1 is not supported"),
        (["--engine", "ray", "--address", "a"], "--address a must be 'host:port' or 'auto'."),
    ],
)
def test_options_of_the_cluster_are_named(run, folder, tmp_path, options, message):
    result = run(["fit", str(folder), "-o", str(tmp_path / "model"), *options])
    assert result.exit_code == 1
    assert message in result.stderr.splitlines()[-1]
    assert not (tmp_path / "model").exists()


def test_appended_users_are_fitted_too(run, run_json, folder, tmp_path):
    copy, more = tmp_path / "shards", tmp_path / "more.csv"
    shutil.copytree(folder, copy)
    more.write_text("user,item,value\n" + "".join(f"{1000 + j},{j},1.5\n" for j in range(20)))
    assert run(["shard", str(more), "-o", str(copy), "--append"]).exit_code == 0
    assert run_json("info", copy)["users"] == 80
    again = run(["shard", str(more), "-o", str(copy), "--append"])
    assert again.exit_code == 1
    assert "20 users are in" in again.stderr


def test_shards_and_retail_are_written_as_shards(run_json, folder, tmp_path):
    found = run_json("shard", folder, "-o", tmp_path / "four", "--shards", 4)
    assert (found["shards"], found["users"]) == (4, 60)
    copy = Shards.open(tmp_path / "four").to_memory().matrix
    assert (copy != Shards.open(folder).to_memory().matrix).nnz == 0
    retail = run_json("shard", "retail", "--value", "invoices", "-o", tmp_path / "retail")
    assert retail["observed"] == 266_221


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("fit SHARDS -o m --exclude-items 3", "--exclude-items has no effect on shards."),
        ("fit SHARDS -o m --value x", "Remove it, or pass it to hcpf shard."),
        ("info SHARDS --drop-blank-ids", "--drop-blank-ids has no effect on shards."),
        ("fit retail -o m --returns net", "--returns has no effect on retail. Remove it."),
        ("evaluate SHARDS --by-time 2024-01-01", "Shards have no dates."),
    ],
)
def test_options_without_effect_are_refused(run, folder, tmp_path, command, message):
    words = {"SHARDS": str(folder), "m": str(tmp_path / "m")}
    result = run([words.get(word, word) for word in command.split()])
    assert result.exit_code == 1
    assert message in result.stderr.splitlines()[-1]


def test_models_are_updated_and_fold_in_users_from_shards(run, run_json, folder, tmp_path):
    data = Shards.open(folder).to_memory()
    model = HCPF(2, element="gamma", n_fits=1, max_iter=3, random_state=0).fit(data)
    model.save(tmp_path / "m")
    assert len(run_json("fold-in", tmp_path / "m", folder, "-n", 1)) > 50
    result = run(["update", str(tmp_path / "m"), str(folder), "--duplicates", "sum"])
    assert result.exit_code == 0
    assert f"{data.n_observed:,} pairs had an entry before: the values were added" in result.stderr
