"""A session of an editor with a notebook: findings of each cell, manual pages, fixes and comments in the cells."""

import pytest

pytest.importorskip("pygls")

from editors import RULE, Editor, edited

IMPORTS = "%matplotlib inline\nimport torch\n"
MODEL = "model = torch.nn.Linear(3, 1)\noptimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
STEPS = """\
files = !ls
for x, y in batches:
    optimizer.zero_grad()
    torch.nn.functional.mse_loss(model(x), y).backward()
    optimizer.step()
"""
CLIP = "    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)"
LINE = 5
"""Of the clip in its cell, from 0."""


class Notebook:
    """A notebook that is open in an editor."""

    def __init__(self, editor, path, *sources):
        self.editor, self.uri, self.version = editor, path.as_uri(), 1
        self.cells = [f"{self.uri.replace('file:', 'vscode-notebook-cell:')}#W{n}" for n in range(len(sources))]
        documents = [self._item(uri, text) for uri, text in zip(self.cells, sources, strict=True)]
        book = {"uri": self.uri, "notebookType": "jupyter-notebook", "version": 1}
        book["cells"] = [{"kind": 2, "document": uri} for uri in self.cells]
        editor.tell("notebookDocument/didOpen", {"notebookDocument": book, "cellTextDocuments": documents})

    @staticmethod
    def _item(uri, text):
        return {"uri": uri, "languageId": "python", "version": 1, "text": text}

    def codes(self):
        """Return the rules in each cell, as the server tells them after a change."""
        shown = {}
        while set(shown) != set(self.cells):
            told = self.editor.told("textDocument/publishDiagnostics")
            shown[told["uri"]] = told["diagnostics"]
        return [[one["code"] for one in shown[uri]] for uri in self.cells], shown

    def change(self, **cells):
        self.version += 1
        book = {"uri": self.uri, "version": self.version}
        self.editor.tell("notebookDocument/didChange", {"notebookDocument": book, "change": {"cells": cells}})

    def write(self, cell, text):
        document = {"uri": self.cells[cell], "version": self.version + 1}
        self.change(textContent=[{"document": document, "changes": [{"text": text}]}])

    def insert(self, place, text):
        uri = f"{self.uri}#new{self.version}"
        self.cells.insert(place, uri)
        array = {"start": place, "deleteCount": 0, "cells": [{"kind": 2, "document": uri}]}
        self.change(structure={"array": array, "didOpen": [self._item(uri, text)]})

    def remove(self, place):
        uri = self.cells.pop(place)
        array = {"start": place, "deleteCount": 1, "cells": []}
        self.change(structure={"array": array, "didClose": [{"uri": uri}]})
        return uri


@pytest.fixture
def editor(tmp_path):
    made = Editor(tmp_path, notebooks=True)
    yield made
    made.close()


@pytest.mark.program
def test_a_session_with_a_notebook(editor, tmp_path):
    assert editor.capabilities["notebookDocumentSync"]["notebookSelector"] == [{"cells": [{"language": "python"}]}]
    book = Notebook(editor, tmp_path / "lab.ipynb", IMPORTS, MODEL, STEPS + CLIP)
    codes, shown = book.codes()
    assert codes == [[], [], [RULE]]
    (finding,) = shown[book.cells[2]]
    assert finding["range"] == {"start": {"line": LINE, "character": 4}, "end": {"line": LINE, "character": 59}}
    place = finding["relatedInformation"][0]["location"]
    assert (place["uri"], place["range"]["start"]["line"]) == (book.cells[2], 4)

    position = {"textDocument": {"uri": book.cells[2]}, "position": {"line": LINE, "character": 10}}
    assert editor.ask("textDocument/hover", position)["contents"]["value"].startswith(f"**{RULE}**")
    position["textDocument"]["uri"] = book.cells[1]
    assert editor.ask("textDocument/hover", position) is None

    actions = editor.actions(book.cells[2], LINE)
    assert editor.actions(book.cells[1], 0) == {}
    allowed = edited(STEPS + CLIP, actions[f"Ignore {RULE} here"], book.cells[2])
    assert allowed == f"{STEPS}{CLIP}  # truestep: ignore[{RULE}]"
    fixed = edited(STEPS + CLIP, next(one for one in actions.values() if one.get("isPreferred")), book.cells[2])
    assert fixed.startswith("files = !ls\nfor x, y in batches:")
    assert fixed.index("clip_grad_norm_") < fixed.index("optimizer.step()")
    (every,) = editor.actions(book.cells[0], 0, only=["source.fixAll"]).values()
    assert edited(STEPS + CLIP, every, book.cells[2]) == fixed

    for text, expected in ((allowed, []), (STEPS + CLIP, [RULE]), (fixed, [])):
        book.write(2, text)
        assert book.codes()[0] == [[], [], expected]
    assert editor.end() == 0


@pytest.mark.program
def test_cells_are_inserted_removed_and_closed(editor, tmp_path):
    book = Notebook(editor, tmp_path / "lab.ipynb", IMPORTS, MODEL, STEPS)
    assert book.codes()[0] == [[], [], []]
    book.insert(3, "optimizer.zero_grad()\n")
    assert book.codes()[0] == [[], [], [], []]
    book.write(2, STEPS + CLIP)
    assert book.codes()[0] == [[], [], [RULE], []]

    removed = book.remove(2)
    told = editor.told("textDocument/publishDiagnostics")
    assert (told["uri"], told["diagnostics"]) == (removed, [])
    assert book.codes()[0] == [[], [], []]

    book.insert(2, STEPS + CLIP)
    assert book.codes()[0] == [[], [], [RULE], []]
    cells = [{"uri": uri} for uri in book.cells]
    editor.tell("notebookDocument/didClose", {"notebookDocument": {"uri": book.uri}, "cellTextDocuments": cells})
    assert book.codes()[0] == [[], [], [], []]
    assert editor.end() == 0


@pytest.mark.program
def test_a_failure_over_two_cells_is_fixed_in_the_cell_of_its_line(editor, tmp_path):
    model = MODEL.replace(
        "torch.nn.Linear(3, 1)", "torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Softmax(dim=1))"
    )
    loss = "criterion = torch.nn.CrossEntropyLoss()\nfor x, y in batches:\n    loss = criterion(model(x), y)\n"
    steps = "    optimizer.zero_grad()\n    loss.backward()\n    optimizer.step()\n"
    book = Notebook(editor, tmp_path / "lab.ipynb", IMPORTS, "# a note", model, loss + steps)
    codes, shown = book.codes()
    (cell,) = [number for number, rules in enumerate(codes) if rules]
    assert codes[cell] == ["softmax-before-cross-entropy"]
    (finding,) = shown[book.cells[cell]]
    assert {one["location"]["uri"] for one in finding["relatedInformation"]} <= set(book.cells)
    assert len({finding["relatedInformation"][0]["location"]["uri"], book.cells[cell]}) == 2
    line = finding["range"]["start"]["line"]
    fixes = [one for title, one in editor.actions(book.cells[cell], line).items() if not title.startswith("Ignore")]
    assert edited(model, fixes[0], book.cells[2]) == MODEL.replace(
        "torch.nn.Linear(3, 1)", "torch.nn.Sequential(torch.nn.Linear(3, 4))"
    )
    assert editor.end() == 0


@pytest.mark.program
def test_a_cell_alone_is_no_program(editor, tmp_path):
    uri = (tmp_path / "lab.ipynb").as_uri().replace("file:", "vscode-notebook-cell:") + "#W1"
    document = {"uri": uri, "languageId": "python", "version": 1, "text": IMPORTS + MODEL + STEPS + CLIP}
    editor.tell("textDocument/didOpen", {"textDocument": document})
    assert editor.told("textDocument/publishDiagnostics")["diagnostics"] == []
    assert editor.end() == 0
