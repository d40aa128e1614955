import io
import subprocess
import sys
from pathlib import Path

import pytest
from runs import RUNS

from truestep.config import Options
from truestep.errors import UnwritableFolder
from truestep.report import render, write


def test_stream_gets_what_render_returns():
    stream = io.StringIO()
    write(RUNS["many"], Options(format="github"), stream)
    assert stream.getvalue() == render(RUNS["many"], "github")


def test_stream_that_is_no_terminal_gets_no_colours():
    stream = io.StringIO()
    write(RUNS["many"], Options(), stream)
    assert "\x1b" not in stream.getvalue()


def test_stream_that_is_no_terminal_is_100_wide_unless_columns_says_otherwise(monkeypatch):
    for columns, width in (("", 100), ("90", 90), ("7", 80)):
        monkeypatch.setenv("COLUMNS", columns)
        stream = io.StringIO()
        write(RUNS["many"], Options(), stream)
        assert stream.getvalue() == render(RUNS["many"], width=width)


def test_stream_of_a_narrow_encoding_gets_replacements():
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")
    write(RUNS["many"], Options(), stream)
    assert b"missing-zero-grad" in raw.getvalue()
    assert b"?" in raw.getvalue()


def test_output_file_is_made_with_its_folder(programs):
    write(RUNS["one"], Options(format="sarif", output=programs / "out" / "report.sarif"), io.StringIO())
    assert (programs / "out" / "report.sarif").read_text(encoding="utf-8") == render(RUNS["one"], "sarif")


def test_output_that_cannot_be_written_is_an_error(programs):
    with pytest.raises(UnwritableFolder, match="cannot be written"):
        write(RUNS["one"], Options(output=programs / "train.py" / "report.txt"), io.StringIO())


def test_quiet_says_nothing_about_a_clear_run():
    stream = io.StringIO()
    write(RUNS["clear"], Options(quiet=True), stream)
    assert stream.getvalue() == ""
    write(RUNS["one"], Options(quiet=True), stream)
    assert stream.getvalue().startswith("error[missing-zero-grad]")


def test_reports_for_programs_import_neither_rich_nor_torch():
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); from runs import RUNS; from truestep.report import render\n"
        "for format in ('json', 'sarif', 'github'): render(RUNS['many'], format)\n"
        "assert not {'rich', 'torch', 'numpy'} & set(sys.modules), sorted(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code, str(Path(__file__).parent)], check=True)


@pytest.mark.parametrize(("environment", "coloured"), [({"TERM": "xterm-256color"}, True), ({"NO_COLOR": "1"}, False)])
def test_terminal_gets_colours_unless_it_says_no(environment, coloured):
    pty = pytest.importorskip("pty")
    import os

    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); from runs import RUNS; from truestep.report import write\n"
        "from truestep.config import Options; write(RUNS['one'], Options())"
    )
    ours, theirs = pty.openpty()
    kept = {key: value for key, value in os.environ.items() if key not in {"NO_COLOR", "FORCE_COLOR", "TERM"}}
    command = [sys.executable, "-c", code, str(Path(__file__).parent)]
    subprocess.run(command, check=True, stderr=theirs, env={"TERM": "xterm"} | kept | environment)
    os.close(theirs)
    text = os.read(ours, 65536)
    os.close(ours)
    assert (b"\x1b[" in text) is coloured
    assert b"missing-zero-grad" in text
