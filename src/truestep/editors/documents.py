"""Open documents of an editor: files, and notebooks, with their cells as one program."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from lsprotocol import types as lsp
from pygls import uris
from pygls.workspace import TextDocument, Workspace

from truestep.editors.edits import Change
from truestep.events import Site
from truestep.findings import Finding
from truestep.fixes.proposal import Proposal, lines
from truestep.lint.engine import Code, code_of
from truestep.lint.notebook_fixes import Cells
from truestep.lint.notebooks import Notebook
from truestep.lint.results import Problem
from truestep.source import SourceFile

_CELL = re.compile(r":cell (\d+)$")
_NOTEBOOK = ".ipynb"
NOTEBOOKS = lsp.NotebookDocumentSyncOptions(
    notebook_selector=[lsp.NotebookDocumentFilterWithCells(cells=[lsp.NotebookCellLanguage("python")])], save=True
)
"""The notebooks and cells that an editor sends."""


class Opened(Protocol):
    """A file or a notebook that is open in an editor."""

    @property
    def uri(self) -> str:
        """Return the address under which the findings are kept."""

    @property
    def path(self) -> str: ...

    @property
    def code(self) -> Code | Problem | None:
        """Return the code to check; None for a document without Python code."""

    @property
    def documents(self) -> Mapping[str, TextDocument]:
        """Return the documents with their addresses, each of which has its own list of findings."""

    def document(self, path: str) -> TextDocument | None:
        """Return the document of a path of a finding."""

    def editable(self, finding: Finding) -> tuple[str, Finding] | None:
        """Return the text that is edited, with the finding at its place in it; None if it cannot be edited."""

    def edits(self, change: Change) -> list[lsp.TextDocumentEdit]:
        """Return a change of this text as edits of documents; an empty list if it is not possible there."""


def opened(workspace: Workspace, uri: str) -> Opened:
    """Return the file of an address, or the notebook of a cell."""
    book = workspace.get_notebook_document(cell_uri=uri) or workspace.get_notebook_document(notebook_uri=uri)
    if book is None:
        return OpenFile(workspace.get_text_document(uri))
    return OpenNotebook(book, [workspace.get_text_document(cell.document) for cell in _code_cells(book)])


def _code_cells(book: lsp.NotebookDocument) -> list[lsp.NotebookCell]:
    return [cell for cell in book.cells if cell.kind is lsp.NotebookCellKind.Code]


@dataclass(frozen=True, slots=True)
class OpenFile:
    """A file of Python code."""

    text: TextDocument

    @property
    def uri(self) -> str:
        return self.text.uri

    @property
    def path(self) -> str:
        return uris.to_fs_path(self.uri) or self.uri

    @property
    def code(self) -> Code | Problem | None:
        # The JSON of a notebook, or one of its cells from an editor that does not send notebooks, is not a program.
        notebook = self.uri.partition("#")[0].endswith(_NOTEBOOK)
        return None if notebook else code_of(self.path, self.text.source)

    @property
    def documents(self) -> Mapping[str, TextDocument]:
        return {self.uri: self.text}

    def document(self, path: str) -> TextDocument | None:
        return self.text

    def editable(self, finding: Finding) -> tuple[str, Finding] | None:
        return self.text.source, finding

    def edits(self, change: Change) -> list[lsp.TextDocumentEdit]:
        return [_edit(self.text, change.old, change.new)]


class OpenNotebook:
    """A notebook.

    Args:
        book: the notebook, as the editor sent it.
        cells: the documents of its cells with code, in their order.
    """

    def __init__(self, book: lsp.NotebookDocument, cells: list[TextDocument]) -> None:
        self.uri = book.uri
        self.path = uris.to_fs_path(book.uri) or book.uri
        self._cells = [cell for cell in cells if cell.language_id in (None, "python")]

    @property
    def code(self) -> Code | Problem | None:
        notebook = Notebook.of_cells((number, cell.source) for number, cell in enumerate(self._cells, start=1))
        return Code(self.path, notebook.text, notebook) if self._cells else None

    @property
    def documents(self) -> Mapping[str, TextDocument]:
        return {cell.uri: cell for cell in self._cells}

    def document(self, path: str) -> TextDocument | None:
        found = _CELL.search(path)
        number = int(found[1]) if found is not None else 1
        return self._cells[number - 1] if number <= len(self._cells) else None

    def editable(self, finding: Finding) -> tuple[str, Finding] | None:
        cells = self._text
        moved = None if cells is None else cells.moved(finding)
        return None if cells is None or moved is None else (cells.text, moved)

    def edits(self, change: Change) -> list[lsp.TextDocumentEdit]:
        cells = self._text
        changed = None if cells is None or cells.text != change.old else cells.divided(change.new)
        new = sorted((changed or {}).items())
        return [_edit(self._cells[index], self._cells[index].source, text) for index, text in new]

    @cached_property
    def _text(self) -> Cells | None:
        return Cells.of(self.path, {index: cell.source for index, cell in enumerate(self._cells)})


def _edit(document: TextDocument, old: str, new: str) -> lsp.TextDocumentEdit:
    replaced: list[lsp.TextEdit | lsp.AnnotatedTextEdit | lsp.SnippetTextEdit] = []
    for first, count, text in Proposal("", "", True, old, new).hunks():
        start, end = lsp.Position(first - 1, 0), lsp.Position(first - 1 + count, 0)
        replaced.append(lsp.TextEdit(lsp.Range(start, end), "".join(text)))
    versioned = lsp.OptionalVersionedTextDocumentIdentifier(uri=document.uri, version=document.version)
    return lsp.TextDocumentEdit(versioned, replaced)


def place(document: TextDocument, site: Site | None) -> lsp.Range:
    """Return a place in the units of the editor; Python counts bytes of UTF-8, and lines from 1."""
    if site is None:
        return lsp.Range(lsp.Position(0, 0), lsp.Position(0, 0))
    file = SourceFile(site.path, tuple(line.rstrip("\r\n") for line in lines(document.source)))
    last = max(site.line, site.end_line)
    start = file.character(site.line, site.column) if site.column >= 0 else 0
    ends = file.character(last, site.end_column) if site.end_column >= 0 else len(file.line(last) or "")
    return lsp.Range(_position(document, site.line - 1, start), _position(document, last - 1, ends))


def _position(document: TextDocument, line: int, character: int) -> lsp.Position:
    every = lines(document.source)
    text = every[line] if line < len(every) else ""
    return lsp.Position(line, document.position_codec.client_num_units(text[:character]))
