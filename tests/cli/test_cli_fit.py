"""hcpf fit: what it reads, writes, says and refuses."""

import json
import shutil

import pyarrow as pa
import pytest
from pyarrow import csv, feather, parquet

from hcpf import HCPF

QUICK = ("-K", "2", "--max-iter", "2", "--threads", "1", "-e", "gamma")


def test_fit_saves_a_model_and_says_what_it_took(run, sales, tmp_path):
    output = tmp_path / "model"
    result = run(["fit", str(sales), "-o", str(output), *QUICK])
    assert result.exit_code == 0, result.output
    assert "user = customer, item = product, response = spend" in result.stderr
    assert f"Wrote {output} (" in result.stderr
    assert result.stdout.startswith(f"Model {output}\n")
    assert "gamma (shape" in result.stdout
    assert "2, at --max-iter" in result.stdout
    assert HCPF.load(output).n_components == 2


def test_json_is_all_of_stdout(run_json, sales, tmp_path):
    found = run_json("fit", sales, "-o", tmp_path / "model", *QUICK)
    assert found["users"] == 60
    assert found["passes"] == 2
    assert found["element"]["name"] == "gamma"
    assert found["bytes"] > 1000
    assert not found["interrupted"]


@pytest.mark.parametrize("ending", ["tsv", "parquet", "feather", "csv.gz"])
def test_formats(run_json, sales, tmp_path, ending):
    table = csv.read_csv(sales)
    path = tmp_path / f"sales.{ending}"
    if ending == "parquet":
        parquet.write_table(table, path)
    elif ending == "feather":
        feather.write_feather(table, str(path))
    else:
        tab = "\t" if ending == "tsv" else ","
        with pa.output_stream(path, compression="gzip" if ending == "csv.gz" else None) as out:
            csv.write_csv(table, out, csv.WriteOptions(delimiter=tab))
    assert run_json("fit", path, "-o", tmp_path / "model", *QUICK)["items"] == 40


def test_globs_and_several_files(run_json, sales, tmp_path):
    lines = sales.read_text().splitlines(keepends=True)
    half = len(lines) // 2
    (tmp_path / "part-1.csv").write_text("".join(lines[:half]))
    (tmp_path / "part-2.csv").write_text("".join([lines[0], *lines[half:]]))
    found = run_json("fit", tmp_path / "part-*.csv", "-o", tmp_path / "model", *QUICK)
    assert found["observed"] == len(lines) - 1


def test_file_without_a_header(run, sales, tmp_path):
    path = tmp_path / "bare.csv"
    path.write_text("".join(sales.read_text().splitlines(keepends=True)[1:]))
    result = run(["fit", str(path), "-o", str(tmp_path / "model"), *QUICK])
    assert result.exit_code == 0, result.output
    assert "The first line holds data" in result.stderr
    assert "user = f0, item = f1, response = f2" in result.stderr


def test_elements_with_parameters_and_other_training(run_json, sales, tmp_path):
    found = run_json(
        "fit", sales, "-o", tmp_path / "a", *QUICK[:-2], "-e", "gamma:shape=2,rate=0.05",
        "--fits", 2,
    )  # fmt: skip
    assert (found["element"]["name"], found["fits"]) == ("gamma", 2)
    found = run_json("fit", sales, "-o", tmp_path / "b", *QUICK[:-2], "--train-on", "binary")
    assert (found["element"]["name"], found["train_on"]) == ("degenerate", "binary")


def test_same_seed_same_model_and_overwrite(run_json, fails, sales, tmp_path):
    output = tmp_path / "model"
    first = run_json("fit", sales, "-o", output, *QUICK)
    assert "--overwrite" in fails("fit", sales, "-o", output, *QUICK)
    second = run_json("fit", sales, "-o", output, *QUICK, "--overwrite")
    assert first["bound"] == second["bound"]


def test_duplicated_pairs(run_json, fails, sales, tmp_path):
    path = tmp_path / "twice.csv"
    lines = sales.read_text().splitlines(keepends=True)
    path.write_text("".join([*lines, lines[-1]]))
    message = fails("fit", path, "-o", tmp_path / "model", *QUICK)
    assert "more than once" in message
    assert "--duplicates sum, mean or last" in message
    assert not (tmp_path / "model").exists()
    run_json("fit", path, "-o", tmp_path / "model", *QUICK, "--duplicates", "mean")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-e", "gama"], "There is no element called 'gama'"),
        (["-e", "gamma:1,2,3"], "gamma takes shape and rate, no more"),
        (["-e", "gamma:a=1"], "has shape and rate, no a"),
        (["-e", "gamma:x"], "'x' is not a number"),
        (["-e", "gamma:-1,2"], "must be a finite number above 0"),
        (["-e", "poisson"], "Choose an element whose support fits"),
        (["--user", "nobody"], "Columns: customer, product, spend."),
        (["--delimiter", "::"], "delimiter must be one ASCII character"),
    ],
)
def test_wrong_options(fails, sales, tmp_path, options, message):
    assert message in fails("fit", sales, "-o", tmp_path / "model", *options)
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("missing.csv", None, "there is no such file"),
        ("a.xlsx", "x", "the ending is none of"),
        ("empty.csv", "", "the file is empty"),
        ("text.csv", "user,item,rating\nann,tea,high\n", "the response 'high' is not a number"),
        ("bad.parquet", "no parquet", "cannot be read"),
        ("bad.arrow", "no arrow", "cannot be read"),
        ("one.csv", "user\nann\n", "pass --item COLUMN"),
    ],
)
def test_wrong_files(fails, tmp_path, name, content, message):
    if content is not None:
        (tmp_path / name).write_text(content)
    assert message in fails("fit", tmp_path / name, "-o", tmp_path / "model")


def test_output_is_checked_before_the_data_are_read(fails, tmp_path, model):
    (tmp_path / "file").write_text("x")
    assert "a model is a folder" in fails("fit", "nowhere.csv", "-o", tmp_path / "file")
    assert "holds other files" in fails("fit", "nowhere.csv", "-o", tmp_path, "--overwrite")
    assert "--overwrite" in fails("fit", "nowhere.csv", "-o", model)


def test_usage_errors(fails, sales):
    assert "--output" in fails("fit", sales, code=2)
    assert "--components" in fails("fit", sales, "-o", "x", "-K", "0", code=2)
    assert "squared" in fails("fit", sales, "-o", "x", "--duplicates", "squared", code=2)


def test_checkpoint_is_gone_on_from(run_json, fails, sales, tmp_path):
    options = ["fit", sales, "-K", 2, "--threads", 1, "-e", "gamma", "--checkpoint", tmp_path / "c"]
    one = run_json(*options, "-o", tmp_path / "a", "--max-iter", 3)
    assert any((tmp_path / "c").iterdir())
    shutil.rmtree(tmp_path / "a")
    assert run_json(*options, "-o", tmp_path / "a", "--max-iter", 3)["bound"] == one["bound"]
    assert "belongs to other data or settings" in fails(
        *options[:-4], "-e", "normal", "--checkpoint", tmp_path / "c", "-o", tmp_path / "b"
    )


def test_retail(run_json, fails, tmp_path):
    quick = ["-K", 2, "--max-iter", 1, "-e", "geometric", "--response", "invoices"]
    found = run_json("fit", "retail", "-o", tmp_path / "model", *quick)
    assert (found["users"], found["items"]) == (4334, 3659)
    out = tmp_path / "x"
    assert "spend, quantity or invoices" in fails("fit", "retail", "-o", out, "--response", "x")
    assert "leave --user" in fails("fit", "retail", "-o", out, "--user", "customer")
    assert "give it alone" in fails("fit", "retail", "a.csv", "-o", out)


def test_verbose_logs_to_stderr_only(run, sales, tmp_path):
    result = run(["-v", "fit", str(sales), "-o", str(tmp_path / "m"), *QUICK, "--json"])
    assert "pass 2: bound" in result.stderr
    json.loads(result.stdout)
    result = run(["fit", str(sales), "-o", str(tmp_path / "n"), *QUICK])
    assert "pass 2" not in result.stderr
