"""What is published and what surrounds the code: the distributions, the workflows, the citation."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

import hcpf

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
SCHEMAS = {
    "vendor.citation-file-format": ["CITATION.cff"],
    "vendor.dependabot": [".github/dependabot.yml"],
    "vendor.github-issue-config": [".github/ISSUE_TEMPLATE/config.yml"],
    "vendor.github-issue-forms": [
        ".github/ISSUE_TEMPLATE/bug.yml",
        ".github/ISSUE_TEMPLATE/feature.yml",
        ".github/ISSUE_TEMPLATE/question.yml",
    ],
    "vendor.github-workflows": [".github/workflows/ci.yml", ".github/workflows/release.yml"],
}


def run(*command, cwd=ROOT):
    """Run a command that must succeed, without the paths of this process, and return its output."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def distributions(tmp_path_factory):
    """The source distribution and the wheel that is built from it."""
    pytest.importorskip("build")
    pytest.importorskip("hatchling")
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT)
    (sdist,), (wheel,) = folder.glob("*.tar.gz"), folder.glob("*.whl")
    return sdist, wheel


@pytest.fixture(scope="module")
def installed(distributions, tmp_path_factory):
    """The scripts of a new environment with the wheel, which borrows what the wheel depends on."""
    folder = tmp_path_factory.mktemp("fresh")
    venv.create(folder, with_pip=True)
    paths = sysconfig.get_paths("venv", {"base": str(folder), "platbase": str(folder)})
    python = Path(paths["scripts"]) / Path(sys.executable).name
    # A path in a .pth file makes packages visible but not the .pth files beside them, so the
    # editable installation of this repository stays out of reach.
    Path(paths["purelib"], "borrowed.pth").write_text(sysconfig.get_path("purelib"))
    run(python, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", distributions[1])
    where = run(python, "-c", "import hcpf; print(hcpf.__file__)", cwd=folder)
    assert Path(where.strip()).is_relative_to(folder)
    return Path(paths["scripts"])


def test_the_wheel_holds_every_file_of_the_package(distributions):
    files = (path for path in (ROOT / "src" / "hcpf").rglob("*") if path.is_file())
    relative = (path.relative_to(ROOT / "src").as_posix() for path in files)
    expected = {name for name in relative if "__pycache__" not in name}
    for data in ("py.typed", "datasets/retail.parquet", "report/templates/report.html"):
        assert f"hcpf/{data}" in expected
    with zipfile.ZipFile(distributions[1]) as wheel:
        names = {name for name in wheel.namelist() if ".dist-info/" not in name}
        assert any(name.endswith("licenses/LICENSE") for name in wheel.namelist())
    assert expected <= names
    assert not [name for name in names if not name.startswith("hcpf/")]


def test_the_source_distribution_holds_what_its_tests_need(distributions):
    with tarfile.open(distributions[0]) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    wanted = {"LICENSE", "README.md", "CHANGELOG.md", "constraints.txt", "tests/conftest.py"}
    assert wanted <= names
    assert not [name for name in names if name.startswith((".venv", "site/", "demo/"))]


@pytest.mark.slow  # the kernels of the new copy of the package are compiled again
def test_the_wheel_works_alone(installed, tmp_path):
    assert hcpf.__version__ in run(installed / "hcpf", "--version", cwd=tmp_path)
    fit = ["fit", "retail", "--element", "gamma", "-K", "3", "--seed", "0", "--fits", "1"]
    run(installed / "hcpf", *fit, "--max-iter", "2", "-o", "model", cwd=tmp_path)
    run(
        installed / "hcpf",
        "report",
        "model",
        "-o",
        "report.html",
        "--names",
        "retail",
        cwd=tmp_path,
    )
    assert "</html>" in (tmp_path / "report.html").read_text()


@pytest.mark.parametrize("schema", SCHEMAS)
def test_files_for_the_host_follow_their_schema(schema):
    pytest.importorskip("check_jsonschema")
    run(sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, *SCHEMAS[schema])


def test_every_file_for_the_host_has_a_schema():
    files = {path.relative_to(ROOT).as_posix() for path in (ROOT / ".github").rglob("*.yml")}
    assert files < {path for paths in SCHEMAS.values() for path in paths}


@pytest.mark.parametrize("workflow", SCHEMAS["vendor.github-workflows"])
def test_workflows_pass_actionlint(workflow):
    actionlint = shutil.which("actionlint")
    if actionlint is None:
        pytest.skip("actionlint is not installed")
    run(actionlint, workflow)


def test_pre_commit_runs_what_make_check_runs():
    yaml = pytest.importorskip("yaml")
    settings = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())
    (local,) = settings["repos"]
    assert local["repo"] == "local"
    tools = {hook["entry"].split()[0].removeprefix(".venv/bin/") for hook in local["hooks"]}
    recipe = re.search(r"^check: .*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.M)
    assert recipe is not None
    assert tools == set(re.findall(r"\$\(BIN\)/([\w-]+)", recipe[1]))


def test_every_supported_python_is_declared_and_tested():
    yaml = pytest.importorskip("yaml")
    prefix = "Programming Language :: Python :: 3."
    declared = [
        c.removeprefix(prefix[:-2]) for c in PROJECT["project"]["classifiers"] if prefix in c
    ]
    workflow = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())
    assert workflow["jobs"]["test"]["strategy"]["matrix"]["python"] == declared
    assert PROJECT["project"]["requires-python"] == f">={declared[0]}"


def test_the_lowest_dependencies_are_those_of_existing_extras():
    named = re.findall(r"--extra (\w+)", (ROOT / ".github/workflows/ci.yml").read_text())
    assert set(named) == set(PROJECT["project"]["optional-dependencies"]) - {"dev", "docs"}


def test_the_citation_has_the_version():
    assert f"\nversion: {hcpf.__version__}\n" in (ROOT / "CITATION.cff").read_text()


def test_every_direct_dependency_is_pinned():
    pins = re.findall(r"^([\w.-]+)==", (ROOT / "constraints.txt").read_text(), re.M)
    pinned = {re.sub(r"[-_.]+", "-", name).lower() for name in pins}
    extras = PROJECT["project"]["optional-dependencies"].values()
    wanted = [*PROJECT["project"]["dependencies"], *(name for extra in extras for name in extra)]
    names = {re.split(r"[\[<>=]", requirement)[0] for requirement in wanted} - {"hcpf"}
    assert names <= pinned
