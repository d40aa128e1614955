from pathlib import Path

import pytest

from truestep.config import Options, load_options, share
from truestep.errors import BadConfiguration


def test_nothing_configured_is_the_defaults(tmp_path):
    assert load_options(tmp_path) == Options()


def test_pyproject_is_read_upwards_from_a_file(tmp_path):
    (tmp_path / "pyproject.toml").write_text(
        '[tool.truestep]\nignore = ["graph-cut"]\nfail-on = "error"\nbudget = "2%"\n'
    )
    (tmp_path / "src").mkdir()
    options = load_options(tmp_path / "src" / "train.py")
    assert (options.ignore, options.fail_on, options.budget) == (("graph-cut",), "error", 0.02)


def test_own_file_wins_over_pyproject_beside_it(tmp_path):
    (tmp_path / "pyproject.toml").write_text('[tool.truestep]\nformat = "json"\n')
    (tmp_path / "truestep.toml").write_text('format = "github"\n')
    assert load_options(tmp_path).format == "github"


def test_nearest_wins_and_pyproject_without_the_table_is_passed_over(tmp_path):
    (tmp_path / "truestep.toml").write_text('format = "sarif"\n')
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "pyproject.toml").write_text("[tool.other]\nx = 1\n")
    assert load_options(tmp_path / "inner").format == "sarif"
    (tmp_path / "inner" / "pyproject.toml").write_text("[tool.truestep]\n")
    assert load_options(tmp_path / "inner").format == "text"


def test_flags_win(tmp_path):
    (tmp_path / "truestep.toml").write_text('select = ["graph-cut"]\nstop-on = "error"\n')
    options = load_options(tmp_path, select=["nan-or-inf,graph-cut"], stop_on=None, budget="5%", record=Path("r"))
    assert options == Options(select=("nan-or-inf", "graph-cut"), stop_on="error", budget=0.05, record=Path("r"))


def test_unknown_key_names_the_nearest(tmp_path):
    (tmp_path / "truestep.toml").write_text('fail_on = "error"\n')
    with pytest.raises(BadConfiguration, match='"fail_on" is not a key') as raised:
        load_options(tmp_path)
    assert raised.value.remedy == 'write "fail-on"'


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('fail-on = "warn"', '"warn"'),
        ('format = "xml"', '"xml"'),
        ("stop-on = true", "True"),
        ("select = 3", "3"),
        ("ignore = [1]", r"\[1\]"),
        ('budget = "much"', '"much"'),
        ("budget = 7", "7"),
        ("budget = true", "True"),
    ],
)
def test_value_that_means_nothing_is_refused(tmp_path, text, value):
    (tmp_path / "truestep.toml").write_text(text + "\n")
    with pytest.raises(BadConfiguration, match=f"{value} is not a value of .*truestep.toml") as raised:
        load_options(tmp_path)
    assert raised.value.expected.startswith("expected")


def test_flag_that_means_nothing_is_refused(tmp_path):
    with pytest.raises(BadConfiguration, match='"loud" is not a value of --format'):
        load_options(tmp_path, format="loud")


def test_flag_that_is_no_option_is_a_mistake_of_the_caller(tmp_path):
    with pytest.raises(TypeError, match="colour"):
        load_options(tmp_path, colour=True)


@pytest.mark.parametrize("content", [b"select = [", b"select = '\xff'"])
def test_broken_file_is_refused(tmp_path, content):
    (tmp_path / "truestep.toml").write_bytes(content)
    with pytest.raises(BadConfiguration, match="not valid TOML"):
        load_options(tmp_path)


@pytest.mark.parametrize(("text", "value"), [("1%", 0.01), ("0.5 %", 0.005), ("0.25", 0.25), (1, 1.0), (0, 0.0)])
def test_share_is_read_as_people_write_it(text, value):
    assert share(text) == pytest.approx(value)
