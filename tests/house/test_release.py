"""A release that could be made today: wheel and sdist are built, installed without the checkout, and used."""

import ast
import email
import json
import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import zipfile
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
import yaml
from packaging.metadata import Metadata
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import truestep
from truestep import templates
from truestep.cli import COMMANDS

pytestmark = pytest.mark.cold

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PROGRAM = """\
import sys, torch
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for _ in range(4):
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
print([path for path in sys.path + [str(module.__dict__.get("__file__")) for module in list(sys.modules.values())]
       if path.startswith(CHECKOUT)])
"""
ALL_HELP = """\
import sys
from truestep.cli import COMMANDS, main
for name in COMMANDS:
    try:
        main([name, "--help"])
    except SystemExit as ended:
        assert not ended.code, name
"""


def built(folder, source, *targets):
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(folder)]
    command += [part for target in targets for part in ("-t", target)]
    subprocess.run(command, cwd=source, check=True, capture_output=True)


class Release:
    """The files of a release, and an environment with the wheel and torch, but without the checkout.

    Attributes:
        wheel: the wheel.
        sdist: the source distribution.
        empty: an empty folder, in which commands are run.
    """

    def __init__(self, folder):
        built(folder / "dist", ROOT, "wheel", "sdist")
        (self.wheel,) = (folder / "dist").glob("*.whl")
        (self.sdist,) = (folder / "dist").glob("*.tar.gz")
        self.empty = folder / "empty"
        self.empty.mkdir()
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "env"], check=True)
        self.scripts = folder / "env" / "bin"
        install = ["install", "--quiet", "--no-deps", "--no-index", "--no-compile", str(self.wheel)]
        subprocess.run([sys.executable, "-m", "pip", "--python", self.scripts / "python", *install], check=True)
        (packages,) = (folder / "env" / "lib").glob("python*/site-packages")
        # The dependencies, torch among them, are those of the tests. Their own *.pth, of the checkout, is not read.
        (packages / "others.pth").write_text(sysconfig.get_path("purelib") + "\n")

    def run(self, *command):
        """Return the completed process of a script of the environment."""
        left_out = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
        env = {name: value for name, value in os.environ.items() if name not in left_out}
        program, *arguments = command
        return subprocess.run(
            [self.scripts / program, *arguments], cwd=self.empty, env=env, capture_output=True, text=True, check=True
        )

    def contents(self):
        """Return the files of the package in the wheel."""
        with zipfile.ZipFile(self.wheel) as archive:
            return {name for name in archive.namelist() if name.startswith("truestep/")}


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    return Release(tmp_path_factory.mktemp("release"))


@pytest.mark.program
def test_the_wheel_has_every_file_of_the_package(release):
    folders = {"truestep": ROOT / "src" / "truestep", "truestep/_proofs": ROOT / "proofs"}
    expected = {
        f"{name}/{path.relative_to(folder).as_posix()}"
        for name, folder in folders.items()
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert release.contents() == expected
    assert {Path(name).suffix for name in expected} == {
        ".py",
        ".typed",
        ".toml",
        ".html",
        ".css",
        ".js",
        ".md",
        ".json",
    }


@pytest.mark.program
def test_the_sdist_makes_the_same_wheel(release, tmp_path):
    with tarfile.open(release.sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    (source,) = tmp_path.iterdir()
    for name in (
        "tests",
        "docs",
        "examples",
        "bench",
        "LICENSE",
        "CHANGELOG.md",
        "CITATION.cff",
        "Makefile",
        ".ci/run",
    ):
        assert (source / name).exists(), name
    built(tmp_path / "dist", source, "wheel")
    (again,) = (tmp_path / "dist").glob("*.whl")
    with zipfile.ZipFile(release.wheel) as one, zipfile.ZipFile(again) as other:
        (record,) = (name for name in one.namelist() if name.endswith("RECORD"))
        assert one.read(record) == other.read(record), "names and hashes of all files"


@pytest.mark.program
def test_the_metadata_are_valid_and_the_readme_is_rendered(release):
    with zipfile.ZipFile(release.wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith("METADATA"))
        text = archive.read(name).decode()
        assert any(name.endswith("licenses/LICENSE") for name in archive.namelist())
    meta = Metadata.from_email(text)  # raises for fields that an index refuses
    assert (meta.name, str(meta.version), meta.license_expression) == ("truestep", truestep.__version__, "Apache-2.0")
    assert meta.description_content_type == "text/markdown"
    assert not meta.project_urls, "a project without an address names none"
    from readme_renderer import markdown

    page = markdown.render(email.message_from_string(text).get_payload())
    assert page is not None
    assert re.search(r"<h2[^>]*>Supervise a script<", page)


@pytest.mark.program
def test_every_command_starts_from_the_wheel(release):
    assert release.run("truestep", "--version").stdout == f"truestep {truestep.__version__}\n"
    assert release.run("python", "-c", ALL_HELP).stdout.count("Usage: truestep ") == len(COMMANDS)


@pytest.mark.program
def test_a_script_is_supervised_and_reported_from_an_empty_folder(release):
    (release.empty / "train.py").write_text(PROGRAM.replace("CHECKOUT", repr(str(ROOT / "src"))))
    run = release.run("truestep", "run", "--record", "record", "--report", "page.html", "train.py")
    assert run.stdout == "[]\n", "nothing of the checkout was imported"
    assert "error[missing-zero-grad]" in run.stderr
    assert "<html" in (release.empty / "page.html").read_text(encoding="utf-8")
    assert release.run("truestep", "report", "record").stdout.strip().endswith("report.html")
    assert "error[missing-zero-grad]" in release.run("truestep", "replay", "record").stdout
    assert "0 failed" in release.run("truestep", "check", "train.py").stderr


@pytest.mark.program
def test_the_texts_of_the_package_are_read_from_the_wheel(release):
    assert "## " not in release.run("truestep", "explain", "clip-after-step").stdout
    assert "loss" in release.run("truestep", "explain", "loss", "is", "nan").stdout
    assert len(json.loads(release.run("truestep", "rules", "--format", "json").stdout)) > 100
    release.run("truestep", "new", "spiral", "lab/train.py")
    assert (release.empty / "lab" / "train.py").read_text(encoding="utf-8") == templates.read("spiral")
    release.run("truestep", "exercise", "tape")
    assert "raise NotImplementedError" in (release.empty / "tape.py").read_text(encoding="utf-8")
    release.run("truestep", "skills", "install")
    assert len(list((release.empty / ".agents" / "skills").glob("*/SKILL.md"))) == 5


# --- extras ----------------------------------------------------------------------------------------------------------


def extra(name):
    """Return the distributions of an extra and of those that it includes."""
    found = set()
    for requirement in map(Requirement, PROJECT["optional-dependencies"][name]):
        if requirement.name == "truestep":
            found |= {name for inner in requirement.extras for name in extra(inner)}
        else:
            found.add(requirement.name)
    return found


def test_the_extra_new_has_what_the_templates_import():
    needed = {templates._PACKAGES.get(module, module) for name in templates.ORDER for module in templates.modules(name)}
    assert needed <= extra("new")


def test_extras_named_in_texts_are_there():
    texts = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "src").rglob("*.py")]
    named = {
        name
        for path in texts
        for names in re.findall(r"(?:truestep|'\.|\.)\[([a-z,]+)\]['\"`]", path.read_text(encoding="utf-8"))
        for name in names.split(",")
    }
    assert {"torch", "new", "report", "mcp", "pictures", "settings", "data", "remote"} <= named
    assert named <= set(PROJECT["optional-dependencies"]) | {""}


@pytest.mark.program
def test_every_import_of_the_package_is_in_an_extra():
    imported = set()
    for path in (ROOT / "src" / "truestep").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                imported |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                imported.add(str(node.module).partition(".")[0])
    others = imported - set(sys.stdlib_module_names) - {"truestep"}
    packages = packages_distributions()
    required = {canonicalize_name(Requirement(text).name) for text in PROJECT["dependencies"]}
    required |= {canonicalize_name(name) for group in PROJECT["optional-dependencies"] for name in extra(group)}
    of_import = {name: {canonicalize_name(one) for one in packages.get(name, [name])} for name in others}
    # A notebook has IPython; jinja2 brings markupsafe, onnxscript onnx_ir, pygls lsprotocol, mcp the other two.
    missing = {name for name in others if not of_import[name] & required}
    assert missing == {"IPython", "anyio", "lsprotocol", "markupsafe", "onnx_ir", "pydantic"}


# --- files for the places where a release is published ---------------------------------------------------------------


def test_the_citation_is_of_this_version():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert {"cff-version", "message", "title", "authors"} <= set(citation)
    assert (citation["version"], citation["license"]) == (truestep.__version__, PROJECT["license"])
    assert citation["title"].lower() == PROJECT["name"]


def test_the_workflow_runs_what_ci_runs():
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8"))
    (job,) = workflow["jobs"].values()
    assert [step["run"] for step in job["steps"] if "run" in step] == [".ci/run"]
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
    (version,) = (step["with"]["python-version"] for step in job["steps"] if "python-version" in step.get("with", {}))
    assert PROJECT["requires-python"] == f">={version}"


def test_issue_forms_are_complete():
    forms = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("[0-9]*.yml"))
    assert len(forms) == 4
    for path in forms:
        form = yaml.safe_load(path.read_text(encoding="utf-8"))
        assert {"name", "description", "labels", "body"} == set(form), path.name
        ids = [part["id"] for part in form["body"] if part["type"] != "markdown"]
        assert len(ids) == len(set(ids)), path.name
        assert {part["type"] for part in form["body"]} <= {"markdown", "input", "textarea", "dropdown"}
        assert all(part["attributes"].get("label") for part in form["body"] if part["type"] != "markdown")


def test_hooks_call_commands_that_exist():
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    for hook in hooks:
        program, command, *options = hook["entry"].split()
        assert program in PROJECT["scripts"]
        text = (Path(__file__).parent / "help" / f"{command}.txt").read_text(encoding="utf-8")
        assert all(option in text for option in options if option.startswith("--"))
        assert {"id", "name", "entry", "language", "description"} <= set(hook)
        files = hook.get("pass_filenames", True)
        assert files == (command == "lint"), "lint takes the changed files; the other commands take one script"
    assert [hook["id"] for hook in hooks] == ["truestep-lint", "truestep-run", "truestep-check"]
