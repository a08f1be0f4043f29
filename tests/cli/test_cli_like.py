"""``hcpf evaluate --like MODEL``: the settings of a saved model, fitted to the training part."""

import pytest

from cli.conftest import write_csv
from hcpf import HCPF, Interactions
from hcpf.elements import Gamma


@pytest.fixture(scope="module")
def liked(tmp_path_factory, varied):
    """A model with settings that are not the defaults."""
    data = Interactions.read(varied, user="customer", item="product", value="spend")
    path = tmp_path_factory.mktemp("liked") / "model"
    HCPF(
        2, element="gamma", vary_by="item", n_fits=1, max_iter=4, tempering=2.0, random_state=7
    ).fit(data).save(path)
    return path


def test_settings_come_from_the_model(run_json, varied, liked):
    about = run_json("evaluate", varied, "--like", liked)
    assert about["components"] == 2
    assert about["description"] == "gamma per item"
    assert about["passes"] <= 4
    assert about["element"]["parameters"] != HCPF.load(liked).model_.element.parameters
    with_seven = run_json("evaluate", varied, "--like", liked, "--seed", 7)
    assert with_seven["scores"] != about["scores"]  # the seed is that of the command


def test_a_given_element_stays(run_json, sales, tmp_path):
    data = Interactions.read(sales, user="customer", item="product", value="spend")
    path = tmp_path / "model"
    fitted = HCPF(2, element=Gamma(2, 0.05), learn_element=False, n_fits=1, max_iter=2).fit(data)
    fitted.save(path)
    about = run_json("evaluate", sales, "--like", path)
    assert about["element"] == {"name": "gamma", "parameters": {"shape": 2.0, "rate": 0.05}}


@pytest.mark.parametrize(
    "option", [("--element", "gamma"), ("--components", "50"), ("--train-on", "full")]
)
def test_settings_cannot_be_given_twice(fails, varied, liked, option):
    said = fails("evaluate", varied, "--like", liked, *option)
    assert f"--like takes the settings from {liked}. Remove {option[0]}." in said


def test_exposures_must_be_given_again(fails, sales, tmp_path):
    data = Interactions.read(sales, user="customer", item="product", value="spend")
    path = tmp_path / "model"
    HCPF(2, element="gamma", n_fits=1, max_iter=2).fit(data, user_exposure=2.0).save(path)
    said = fails("evaluate", sales, "--like", path)
    assert "was fitted with exposures of users. Pass --user-exposure." in said


def test_without_a_model_the_choice_is_explained(run, tmp_path):
    from hcpf import simulate

    drawn = simulate(40, 30, density=0.3, element=Gamma(2, 0.05), random_state=2)
    path = write_csv(tmp_path / "sales.csv", drawn.interactions)
    result = run(["evaluate", str(path), "-K", "2", "--fits", "1", "--max-iter", "3"])
    assert result.exit_code == 0
    assert "The element was chosen by short fits" in result.stderr
    assert "--like MODEL" in result.stderr
