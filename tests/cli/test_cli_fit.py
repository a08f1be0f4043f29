"""hcpf fit: what it reads, writes, says and refuses."""

import json
import shutil

import pyarrow as pa
import pytest
from pyarrow import csv, feather, parquet

from hcpf.model.fitted import FittedModel

QUICK = ("-K", "2", "--fits", "1", "--max-iter", "2", "--threads", "1", "-e", "gamma")


def test_fit_saves_a_model_and_says_what_it_took(run, sales, tmp_path):
    output = tmp_path / "model"
    result = run(["fit", str(sales), "-o", str(output), *QUICK])
    assert result.exit_code == 0, result.output
    assert "user = customer, item = product, value = spend" in result.stderr
    assert f"Wrote {output} (" in result.stderr
    assert result.stdout.startswith(f"Model {output}\n")
    assert "gamma (shape" in result.stdout
    assert "2, not converged at the limit of 2" in result.stdout
    assert FittedModel.load(output).n_components == 2


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
    assert "The first line contains data" in result.stderr
    assert "user = f0, item = f1, value = f2" in result.stderr


def test_value_models(run_json, sales, tmp_path):
    quick = ("-K", 2, "--max-iter", 2, "--threads", 1)
    given = ("-e", "gamma:shape=2,rate=0.05", "--vary-by", "item", "--hurdle", "--fits", 2)
    found = run_json("fit", sales, "-o", tmp_path / "a", *quick, *given)
    assert (found["element"]["name"], found["fits"]) == ("gamma", 2)
    assert (found["vary_by"], found["hurdle"]) == ("item", True)
    model = FittedModel.load(tmp_path / "a")
    assert model.value_model.description == "gamma hurdle per item"
    found = run_json("fit", sales, "-o", tmp_path / "b", *quick, "--fits", 1, "-e", "presence")
    assert (found["element"]["name"], found["vary_by"]) == ("presence", None)


def test_the_papers_recipe(run_json, sales, tmp_path):
    quick = ("-K", 2, "--max-iter", 2, "--threads", 1, "-e", "gamma", "--recipe", "paper")
    found = run_json("fit", sales, "-o", tmp_path / "a", *quick)
    assert (found["fits"], found["components"]) == (1, 2)
    settings = FittedModel.load(tmp_path / "a").settings
    assert (settings["priors"], settings["solver"], settings["tol"]) == ("paper", "algorithm1", 0.0)
    run_json("fit", sales, "-o", tmp_path / "b", *quick, "--solver", "cavi")
    assert FittedModel.load(tmp_path / "b").settings["solver"] == "cavi"


def test_each_option_has_its_effect_with_any_other(run, sales, tmp_path):
    small = ("-K", "2", "--max-iter", "2", "--threads", "1", "-e", "gamma")

    def fit(*options):
        path = tmp_path / f"model{len(list(tmp_path.iterdir()))}"
        result = run(["fit", str(sales), "-o", str(path), *small, *options])
        assert result.exit_code == 0, result.output
        return FittedModel.load(path).settings, result

    settings, result = fit("--recipe", "paper")
    assert "2, without early stopping" in result.stdout
    assert "did not converge" not in result.stderr
    settings, result = fit("--recipe", "paper", "--tol", "1e-9")
    assert settings["tol"] == 1e-9
    assert "2, not converged at the limit of 2" in result.stdout
    assert "did not converge" in result.stderr
    assert fit("--solver", "cavi", "--fits", "1")[0]["solver"] == "cavi"
    settings, _ = fit("--quick", "--fits", "2")
    assert (settings["n_fits"], settings["solver"], settings["tol"]) == (2, "auto", 1e-4)
    assert fit("--quick")[0]["n_fits"] == 1


@pytest.mark.parametrize("option", [("--fits", "4"), ("--quick",), ("--hurdle",)])
def test_what_is_not_part_of_the_papers_recipe_is_refused(run, sales, tmp_path, option):
    result = run(["fit", str(sales), "-o", str(tmp_path / "a"), "--recipe", "paper", *option])
    assert result.exit_code == 1
    assert f"{' '.join(option)} is not part of --recipe paper" in result.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--vary-by", "item"], "--vary-by item requires an --element other than auto"),
        (["--hurdle"], "--hurdle requires an --element"),
        (["-e", "degenerate", "--vary-by", "user"], "--vary-by user does not work with Degenerate"),
        (["-e", "binomial", "--vary-by", "both"], "--vary-by both does not work with Binomial"),
        (["-e", "gamma", "--hurdle", "--train-on", "observed"], "Use --train-on full or remove"),
    ],
)
@pytest.mark.parametrize("command", ["fit", "evaluate"])
def test_value_models_that_do_not_exist(fails, sales, tmp_path, command, options, message):
    output = ["-o", tmp_path / "model"] if command == "fit" else []
    assert message in fails(command, sales, *output, "-K", 2, *options)
    assert not (tmp_path / "model").exists()


def test_same_seed_same_model_and_overwrite(run_json, fails, sales, tmp_path):
    output = tmp_path / "model"
    first = run_json("fit", sales, "-o", output, *QUICK)
    assert "--overwrite" in fails("fit", sales, "-o", output, *QUICK)
    second = run_json("fit", sales, "-o", output, *QUICK, "--overwrite")
    assert first["elbo"] == second["elbo"]


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
        (["-e", "gama"], "Unknown element 'gama'"),
        (
            ["-e", "gamma:1,2,3"],
            "--element gamma:1,2,3: gamma takes 2 parameters (shape, rate), got 3.",
        ),
        (["-e", "gamma:a=1"], "gamma has no parameter a; it takes 2 parameters"),
        (["-e", "gamma:x"], "'x' is not a number"),
        (["-e", "gamma:-1,2"], "must be a finite number above 0"),
        (["-e", "poisson"], "Choose an element with this value in its support"),
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
        ("a.pdf", "x", "unknown file extension"),
        ("a.xlsx", "x", "cannot be read"),
        ("empty.csv", "", "the file is empty"),
        (
            "text.csv",
            "user,item,rating\nann,tea,high\n",
            "values that are not numbers: 'high' in row 2",
        ),
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
    assert "but a model is a folder" in fails("fit", "nowhere.csv", "-o", tmp_path / "file")
    assert "contains other files" in fails("fit", "nowhere.csv", "-o", tmp_path, "--overwrite")
    assert "--overwrite" in fails("fit", "nowhere.csv", "-o", model)


def test_usage_errors(fails, sales):
    assert "--output" in fails("fit", sales, code=2)
    assert "--components" in fails("fit", sales, "-o", "x", "-K", "0", code=2)
    assert "squared" in fails("fit", sales, "-o", "x", "--duplicates", "squared", code=2)


def test_checkpoint_is_resumed(run_json, fails, sales, tmp_path):
    options = [
        "fit",
        sales,
        "-K",
        2,
        "--fits",
        1,
        "--threads",
        1,
        "-e",
        "gamma",
        "--checkpoint",
        tmp_path / "c",
    ]
    one = run_json(*options, "-o", tmp_path / "a", "--max-iter", 3)
    assert any((tmp_path / "c").iterdir())
    shutil.rmtree(tmp_path / "a")
    assert run_json(*options, "-o", tmp_path / "a", "--max-iter", 3)["elbo"] == one["elbo"]
    assert "belongs to other data or settings" in fails(
        *options[:-4], "-e", "normal", "--checkpoint", tmp_path / "c", "-o", tmp_path / "b"
    )


def test_columns_that_might_be_the_value_are_named(run, tmp_path):
    path = tmp_path / "sales.csv"
    path.write_text("who,what,note\na,x,nice\nb,y,bad\n")
    assert "Not used: note. If one is the value: --value NAME." in run(["info", str(path)]).stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [("user,item,spend\n", "There are no rows"), ("user,user,spend\na,b,3.5\n", "more than once")],
)
def test_files_without_rows_or_with_columns_of_one_name(fails, tmp_path, text, message):
    path = tmp_path / "sales.csv"
    path.write_text(text)
    assert message in fails("info", path)


def test_retail(run_json, fails, tmp_path):
    quick = ["-K", 2, "--fits", 1, "--max-iter", 1, "-e", "geometric", "--value", "invoices"]
    found = run_json("fit", "retail", "-o", tmp_path / "model", *quick)
    assert (found["users"], found["items"]) == (4334, 3659)
    out = tmp_path / "x"
    assert "spend, quantity or invoices" in fails("fit", "retail", "-o", out, "--value", "x")
    assert "Remove --user" in fails("fit", "retail", "-o", out, "--user", "customer")
    assert "cannot be combined with files" in fails("fit", "retail", "a.csv", "-o", out)


def test_verbose_logs_to_stderr_only(run, sales, tmp_path):
    result = run(["-v", "fit", str(sales), "-o", str(tmp_path / "m"), *QUICK, "--json"])
    assert "pass 2: " in result.stderr
    json.loads(result.stdout)
    result = run(["fit", str(sales), "-o", str(tmp_path / "n"), *QUICK])
    assert "pass 2" not in result.stderr
