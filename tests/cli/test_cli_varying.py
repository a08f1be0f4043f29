"""--per: elements whose mean varies by user, item or both."""

import pytest

from hcpf import HCPF, Interactions

QUICK = ("-K", 2, "--max-iter", 5, "--threads", 1)


@pytest.fixture(scope="module")
def by_item(folder, varied):
    from hcpf.elements import Gamma

    data = Interactions.read(varied, user="customer", item="product", response="spend")
    path = folder / "by-item"
    HCPF(2, element=Gamma(per="item"), max_iter=5, n_threads=1, random_state=0).fit(data).save(path)
    return path


@pytest.mark.parametrize("per", ["user", "item", "both"])
def test_fit_and_info(run, run_json, varied, tmp_path, per):
    out = tmp_path / "model"
    found = run_json("fit", varied, "-o", out, *QUICK, "-e", "gamma:shape=3", "--per", per)
    assert found["element"]["per"] == per
    assert HCPF.load(out).element_.per == per
    about = run_json("info", out)
    sides = {"user": ["users"], "item": ["items"], "both": ["users", "items"]}[per]
    assert list(about["usual"]) == sides
    text = run(["info", str(out)]).stdout
    assert "its mean varies by" in text
    assert "in the median, nine in ten between" in text


def test_info_names_the_ends(run, run_json, by_item, tmp_path):
    about = run_json("info", by_item)["usual"]["items"]
    first, last = about["highest"][0], about["lowest"][0]
    assert first["usual"] > about["fitted"]["median"] > last["usual"]
    assert about["new"]["low"] < about["new"]["median"] < about["new"]["high"]
    assert first["usual"] == pytest.approx(first["average"], rel=0.25)  # of many entries
    names = tmp_path / "names.csv"
    names.write_text(f"id,name\n{first['id']},the dearest\n")
    assert "the dearest" in run(["info", str(by_item), "--names", str(names)]).stdout


def test_info_of_a_shared_theta(run_json, model):
    assert run_json("info", model)["usual"] is None


def test_evaluate(run, run_json, varied):
    shared = run_json("evaluate", varied, *QUICK, "-e", "gamma")
    found = run_json("evaluate", varied, *QUICK, "-e", "gamma", "--per", "item")
    better = found["scores"]["conditional_nonmissing"]
    assert better > shared["scores"]["conditional_nonmissing"] + 0.05
    text = run(["evaluate", str(varied), *map(str, QUICK), "-e", "gamma", "--per", "item"]).stdout
    assert "its mean varies by item" in text


def test_report_has_a_section_on_it(run_json, by_item, tmp_path):
    out = tmp_path / "report.html"
    run_json("report", by_item, "-o", out)
    text = out.read_text()
    assert '<section id="usual"' in text
    assert 'id="usual-items"' in text
    assert 'id="usual-users"' not in text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--per", "item"], "--per item needs an --element"),
        (["-e", "auto", "--per", "both"], "--element gamma --per both"),
        (["-e", "degenerate", "--per", "user"], "no theta that could vary: leave --per out"),
        (["-e", "binomial", "--per", "both"], "not by both at once"),
        (["-e", "gamma", "--per", "item", "--train-on", "binary"], "leave element out"),
    ],
)
@pytest.mark.parametrize("command", ["fit", "evaluate"])
def test_refuses(fails, varied, tmp_path, command, options, message):
    where = ["-o", tmp_path / "model"] if command == "fit" else []
    assert message in fails(command, varied, *where, *QUICK, *options)
    assert not (tmp_path / "model").exists()


def test_refuses_other_words(fails, varied, tmp_path):
    fails("fit", varied, "-o", tmp_path / "m", "-e", "gamma", "--per", "product", code=2)


def test_one_element_for_each_value(run, run_json, fails, sales, tmp_path):
    model = tmp_path / "once"
    options = ("-K", 2, "--max-iter", 3, "--threads", 1)
    found = run_json("fit", sales, "-o", model, "-e", "gamma", "--once", "--per", "item", *options)
    assert found["element"]["once"] is True
    assert "once for each observed pair" in run(["info", str(model)]).stdout
    assert "--once needs an --element" in fails("fit", sales, "-o", tmp_path / "x", "--once")
    problem = fails("evaluate", sales, "-e", "binomial", "--once", "--per", "both", *options)
    assert "not by both at once" in problem
