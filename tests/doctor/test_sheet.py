"""The sheet: every fact has a line, every piece of advice stands under one."""

import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from machines import GIB, H100, MIB, SERVER, WELL, failing, machine, unseen, with_runs
from rich.console import Console

import truestep.doctor
from truestep.cli.doctor import show
from truestep.doctor import advise, document, sheet, summary
from truestep.doctor.facts import Handles, Memory, Package, Processors, Shared, Torch
from truestep.doctor.readers.packages import EXTRAS, read

SCHEMA = json.loads(Path(truestep.doctor.__file__).with_name("doctor.schema.json").read_text(encoding="utf-8"))
CONTAINER = machine(
    interpreter__container=True,
    processors=Processors(
        name="AMD EPYC 7763 64-Core Processor", present=128, allowed=64, cores=32, quota=2.0, bf16=()
    ),
    torch__threads=64,
    memory=Memory(total=512 * GIB, available=400 * GIB, limit=4 * GIB, limit_free=GIB),
    shared=Shared(path="/dev/shm", total=64 * MIB, free=64 * MIB, writable=True),
    handles=Handles(soft=1024, hard=1024),
    variables=(("CUDA_LAUNCH_BLOCKING", "1"), ("KMP_DUPLICATE_LIB_OK", "TRUE"), ("OMP_NUM_THREADS", "64")),
)
MACHINES = {
    "well": WELL,
    "server": SERVER,
    "container": CONTAINER,
    "no torch": machine(torch=Torch()),
    "old torch": machine(torch=Torch(version="2.4.1")),
    "broken torch": machine(torch=Torch(version="2.9.0", failure="the process died of SIGILL when it was imported")),
    "unseen gpu": unseen(variables=(("CUDA_VISIBLE_DEVICES", ""),)),
    "old gpu": failing(capability="6.1", failure="no kernel image"),
    "held gpu": replace(SERVER, accelerators=(replace(H100, free=GIB),)),
    "no nccl": machine(SERVER, torch__backends=()),
    "read-only": with_runs(failure="read-only file system", read_only=True, network=True, system="nfs4"),
    "nothing known": machine(
        memory=Memory(), shared=None, handles=None, processors__bf16=None, processors__cores=None, compiler__path=None
    ),
    "old package": machine(
        packages=(
            Package(name="rich", needs=">=13.9", version="12.0"),
            Package(name="torch", needs=">=2.8", version="2.9.0", extra="torch"),
            Package(name="numpy", needs=">=1.26", version="1.20", extra="torch"),
        )
    ),
}

each_machine = pytest.mark.parametrize("facts", MACHINES.values(), ids=MACHINES.keys())


def printed(facts, width=80):
    advice, out = advise(facts), io.StringIO()
    show(sheet(facts, advice), *summary(facts, advice), Console(file=out, width=width, highlight=False))
    return out.getvalue()


@each_machine
def test_all_advice_is_on_the_sheet_once(facts):
    advice = advise(facts)
    shown = [one for group in sheet(facts, advice) for line in group.lines for one in line.advice]
    assert sorted(shown, key=str) == sorted(advice, key=str)


@each_machine
@pytest.mark.parametrize("width", [80, 100])
def test_fits_the_width_except_for_what_is_copied(facts, width):
    long = [
        row for row in printed(facts, width).splitlines() if len(row) > width and "/" not in row and "$ " not in row
    ]
    assert long == []
    assert printed(facts).isascii()
    assert not [row for row in printed(facts).splitlines() if row != row.rstrip()]


@each_machine
def test_json_is_as_its_schema_says(facts):
    plain = json.loads(json.dumps(document(facts, advise(facts))))
    Draft202012Validator(SCHEMA).validate(plain)


def compare(schema, value, where):
    """Hold that each object has the fields that the schema names, all of them and no others."""
    if value is not None and "anyOf" in schema:
        schema = next(one for one in schema["anyOf"] if one.get("type") != "null")
    if "$ref" in schema:
        schema = SCHEMA["$defs"][schema["$ref"].rpartition("/")[2]]
    if isinstance(value, dict) and "properties" in schema:
        assert set(schema["properties"]) == set(schema["required"]) == set(value), where
        for name, inner in value.items():
            compare(schema["properties"][name], inner, f"{where}.{name}")
    for inner in value if isinstance(value, list) else ():
        compare(schema["items"], inner, where)


@each_machine
def test_the_schema_names_every_field_that_is_written(facts):
    compare(SCHEMA, json.loads(json.dumps(document(facts, advise(facts)))), "document")


@pytest.mark.parametrize(
    ("name", "ready", "sentence"),
    [
        ("well", True, "ready: Run trains on the CPU in fp32; nothing to improve"),
        ("server", True, "ready: Run trains on cuda (NVIDIA H100 80GB HBM3) in bf16; nothing to improve"),
        ("no torch", False, "not ready: 1 problem"),
        ("unseen gpu", True, "ready: Run trains on the CPU in fp32; 1 warning"),
        ("container", True, "ready: Run trains on the CPU in fp32; 4 warnings, 1 hint"),
    ],
)
def test_summary(name, ready, sentence):
    facts = MACHINES[name]
    assert summary(facts, advise(facts)) == (ready, sentence)


def test_a_container_reads_well():
    text = " ".join(printed(CONTAINER).split())
    assert "64 threads of torch on 64 of 128 processors (32 cores), limited to the time of 2 (cgroup)" in text
    assert "this process is limited to 4 GiB (cgroup), 1 GiB of it free" in text
    assert "$ export OMP_NUM_THREADS=2" in text
    assert "  CUDA_LAUNCH_BLOCKING  1\n" in printed(CONTAINER)


@pytest.mark.parametrize(
    ("torch", "python", "checked"),
    [
        ("2.13.0+cpu", "3.11.7", "Python 3.11 and 3.13\n"),
        ("2.13.0+cpu", "3.12.1", "Python 3.11 and 3.13\n                 Python 3.12 lies between these\n"),
        ("2.9.1", "3.12.1", "Python 3.11 and 3.13\n                 torch 2.9 and Python 3.12 lie between these\n"),
        (None, "3.11.7", "Python 3.11 and 3.13\n"),
    ],
)
def test_the_versions_that_were_checked_are_said_beside_those_at_hand(torch, python, checked):
    facts = machine(torch__version=torch, interpreter__version=python)
    assert f"\n  checked with   torch 2.8, 2.13 and 2.15; {checked}" in printed(facts)
    assert document(facts, advise(facts))["checked"] == {"torch": ["2.8", "2.13", "2.15"], "python": ["3.11", "3.13"]}


def test_a_torch_that_cannot_be_imported_is_of_no_known_build():
    assert "  torch          2.9.0\n" in printed(MACHINES["broken torch"])


def test_an_extra_that_is_not_installed_says_how_to():
    text = printed(WELL)
    assert "  [metrics]      torchmetrics in evaluations: lacks torchmetrics\n" in text
    assert '\n                 $ pip install "truestep[metrics]"\n' in text


def test_the_file_system_of_a_folder_is_named_where_it_is_known():
    assert "500 GiB free, nfs4 (network), writes" in printed(MACHINES["read-only"])
    assert "500 GiB free, ext4, writes" in printed(with_runs(system="ext4", network=False))
    assert "(network)" not in printed(with_runs(system="ext4", network=False))


def test_colours_are_for_terminals():
    out = io.StringIO()
    advice = advise(CONTAINER)
    show(
        sheet(CONTAINER, advice),
        *summary(CONTAINER, advice),
        Console(file=out, width=80, force_terminal=True, color_system="standard"),
    )
    assert "\x1b[1;33mwarning:\x1b[0m" in out.getvalue()
    assert "\x1b" not in printed(CONTAINER)


def test_extras_are_those_of_the_package():
    import tomllib

    root = Path(__file__).parents[2]
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert set(EXTRAS) == set(project["optional-dependencies"]) - {"all", "dev", "docs", "frameworks"}


def test_metadata_is_read_whatever_its_style():
    found = read(
        [
            "rich (>=13.9)",
            "mkdocs<2,>=1.6; extra == 'docs'",
            'torch>=2.8 ; extra == "data"',
            "truestep[torch]; extra == 'demo'",
        ]
    )
    assert [(package.name, package.needs, package.extra) for package in found] == [
        ("rich", ">=13.9", ""),
        ("torch", ">=2.8", "data"),
    ]
