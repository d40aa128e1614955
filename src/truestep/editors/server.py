"""The Language Server Protocol: findings as files and notebooks are written, manual pages, fixes, comments."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from lsprotocol import types as lsp
from pygls.lsp.server import LanguageServer

from truestep import __version__
from truestep.editors import edits
from truestep.editors.checked import Checked, Choice, checked
from truestep.editors.documents import NOTEBOOKS, Opened, opened, place
from truestep.editors.edits import Change
from truestep.errors import TrueStepError
from truestep.findings import Finding, Severity
from truestep.lint.results import Problem
from truestep.rules import rule
from truestep.rules._page import parse

PAUSE_S = 0.3
"""Time without a change after which a file is checked."""
FIX_ALL = "source.fixAll.truestep"
_SEVERITIES = {
    Severity.ERROR: lsp.DiagnosticSeverity.Error,
    Severity.WARNING: lsp.DiagnosticSeverity.Warning,
    Severity.SPEED: lsp.DiagnosticSeverity.Information,
}
_LOG = logging.getLogger(__name__)


def serve(choice: Choice) -> None:
    """Serve on standard input and output until the editor closes them."""
    logging.getLogger("pygls").setLevel(logging.ERROR)
    server(choice).start_io()


def server(choice: Choice) -> LanguageServer:
    """Return the server."""
    made = LanguageServer("truestep", __version__, notebook_document_sync=NOTEBOOKS)
    session = Session(made, choice)
    for method, answer in (
        (lsp.TEXT_DOCUMENT_DID_OPEN, session.opened),
        (lsp.TEXT_DOCUMENT_DID_CHANGE, session.changed),
        (lsp.TEXT_DOCUMENT_DID_SAVE, session.saved),
        (lsp.TEXT_DOCUMENT_DID_CLOSE, session.closed),
        (lsp.NOTEBOOK_DOCUMENT_DID_OPEN, session.opened_notebook),
        (lsp.NOTEBOOK_DOCUMENT_DID_CHANGE, session.changed_notebook),
        (lsp.NOTEBOOK_DOCUMENT_DID_SAVE, session.saved_notebook),
        (lsp.NOTEBOOK_DOCUMENT_DID_CLOSE, session.closed_notebook),
    ):
        made.feature(method)(_function(answer))
    made.feature(lsp.TEXT_DOCUMENT_HOVER)(_function(session.hover))
    kinds = [lsp.CodeActionKind.QuickFix, FIX_ALL]
    made.feature(lsp.TEXT_DOCUMENT_CODE_ACTION, lsp.CodeActionOptions(code_action_kinds=kinds))(
        _function(session.actions)
    )
    return made


def _function(method: Callable[[Any], Awaitable[Any]]) -> Callable[[Any], Awaitable[Any]]:
    """Return a method as a function, on which pygls can set attributes."""

    async def answer(params: Any) -> Any:
        return await method(params)

    return answer


class Session:
    """The open files and notebooks of an editor.

    Args:
        server: the connection.
        choice: the choice of the command line.
    """

    def __init__(self, server: LanguageServer, choice: Choice) -> None:
        self._server = server
        self._choice = choice
        self._checked: dict[str, Checked] = {}
        self._waiting: dict[str, asyncio.TimerHandle] = {}
        self._complaint = ""

    async def opened(self, params: lsp.DidOpenTextDocumentParams) -> None:
        """Check a file when it is opened."""
        self._publish(params.text_document.uri)

    async def opened_notebook(self, params: lsp.DidOpenNotebookDocumentParams) -> None:
        """Check a notebook when it is opened."""
        self._publish(params.notebook_document.uri)

    async def changed(self, params: lsp.DidChangeTextDocumentParams) -> None:
        """Check a file once it has not changed for a moment."""
        self._wait(params.text_document.uri)

    async def changed_notebook(self, params: lsp.DidChangeNotebookDocumentParams) -> None:
        """Check a notebook once it has not changed for a moment; take the findings of removed cells from the list."""
        structure = None if params.change.cells is None else params.change.cells.structure
        self._clear([] if structure is None else [one.uri for one in structure.did_close or []])
        self._wait(params.notebook_document.uri)

    async def saved(self, params: lsp.DidSaveTextDocumentParams) -> None:
        """Check a file at once: the configuration may have changed too."""
        self._again(params.text_document.uri)

    async def saved_notebook(self, params: lsp.DidSaveNotebookDocumentParams) -> None:
        """Check a notebook at once."""
        self._again(params.notebook_document.uri)

    async def closed(self, params: lsp.DidCloseTextDocumentParams) -> None:
        """Take the findings of a file from the editor's list."""
        self._close(params.text_document.uri, [params.text_document.uri])

    async def closed_notebook(self, params: lsp.DidCloseNotebookDocumentParams) -> None:
        """Take the findings of a notebook from the editor's list."""
        self._close(params.notebook_document.uri, [cell.uri for cell in params.cell_text_documents])

    async def hover(self, params: lsp.HoverParams) -> lsp.Hover | None:
        """Return the findings at a place, with the manual pages of their rules."""
        for one, found in self._at(params.text_document.uri):
            if _before(found.start, params.position) and _before(params.position, found.end):
                text = f"**{one.rule}** ({one.confidence.value} confidence): {one.message}\n\n"
                text += f"*help:* {one.help}\n\n---\n\n"
                page = parse(rule(one.rule).__doc__ or "").markdown(level=4)
                return lsp.Hover(lsp.MarkupContent(lsp.MarkupKind.Markdown, text + page), found)
        return None

    async def actions(self, params: lsp.CodeActionParams) -> list[lsp.CodeAction]:
        """Return the changes that are offered at a place."""
        opened = self._opened(params.text_document.uri)
        actions: list[lsp.CodeAction | None] = []
        if _wanted(lsp.CodeActionKind.QuickFix, params.context.only):
            for one, at in self._at(params.text_document.uri):
                inside = at.start.line <= params.range.end.line and at.end.line >= params.range.start.line
                editable = opened.editable(one) if inside else None
                if editable is not None:
                    about = [_diagnostic(opened, one, at)]
                    changes = (edits.fix(*editable), edits.allow(*editable))
                    actions += [_action(opened, change, lsp.CodeActionKind.QuickFix, about) for change in changes]
        if params.context.only and _wanted(FIX_ALL, params.context.only):
            every = [found for each in self._now(opened).findings if (found := opened.editable(each)) is not None]
            change = edits.fix_all(every[0][0], [finding for _, finding in every]) if every else None
            actions.append(_action(opened, change, FIX_ALL, None))
        return [one for one in actions if one is not None]

    def _publish(self, uri: str) -> None:
        self._forget(uri)
        opened = self._opened(uri)
        now = self._now(opened)
        shown: dict[str, list[lsp.Diagnostic]] = {address: [] for address in opened.documents}
        for one in now.findings:
            document = None if one.primary.site is None else opened.document(one.primary.site.path)
            if document is not None:
                shown[document.uri].append(_diagnostic(opened, one, place(document, one.primary.site)))
        for problem in now.problems:
            document = opened.document(problem.path)
            if document is not None:
                shown[document.uri].append(_unread(problem))
        for address, document in opened.documents.items():
            params = lsp.PublishDiagnosticsParams(address, shown[address], document.version)
            self._server.text_document_publish_diagnostics(params)

    def _at(self, uri: str) -> list[tuple[Finding, lsp.Range]]:
        """Return the findings in a document with their places."""
        opened, found = self._opened(uri), []
        here = self._server.workspace.get_text_document(uri).uri
        for one in self._now(opened).findings:
            document = None if one.primary.site is None else opened.document(one.primary.site.path)
            if document is not None and document.uri == here:
                found.append((one, place(document, one.primary.site)))
        return found

    def _now(self, opened: Opened) -> Checked:
        """Return the findings in a file or notebook as it is in the editor."""
        code = opened.code
        known = self._checked.get(opened.uri)
        if known is None or known.code != code:
            try:
                known = checked(code, self._choice)
                complaint = "".join(f"internal error of the rule {one}" for one in known.errors)
            except TrueStepError as error:
                known, complaint = Checked(code), str(error)
            self._checked[opened.uri] = known
            self._complain(complaint)
        return known

    def _complain(self, complaint: str) -> None:
        """Show an error once, not after each change."""
        if complaint and complaint != self._complaint:
            self._server.window_show_message(lsp.ShowMessageParams(lsp.MessageType.Error, f"truestep: {complaint}"))
        self._complaint = complaint

    def _opened(self, uri: str) -> Opened:
        return opened(self._server.workspace, uri)

    def _wait(self, uri: str) -> None:
        self._forget(uri)
        self._waiting[uri] = asyncio.get_running_loop().call_later(PAUSE_S, self._publish, uri)

    def _again(self, uri: str) -> None:
        self._checked.pop(uri, None)
        self._publish(uri)

    def _close(self, uri: str, documents: Iterable[str]) -> None:
        self._forget(uri)
        self._checked.pop(uri, None)
        self._clear(documents)

    def _clear(self, documents: Iterable[str]) -> None:
        for uri in documents:
            self._server.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri, []))

    def _forget(self, uri: str) -> None:
        timer = self._waiting.pop(uri, None)
        if timer is not None:
            timer.cancel()


def _diagnostic(opened: Opened, finding: Finding, at: lsp.Range) -> lsp.Diagnostic:
    related = []
    for mark in finding.related:
        document = None if mark.site is None else opened.document(mark.site.path)
        if document is not None:
            location = lsp.Location(document.uri, place(document, mark.site))
            related.append(lsp.DiagnosticRelatedInformation(location, mark.label))
    return lsp.Diagnostic(
        range=at,
        message=f"{finding.message}\nhelp: {finding.help}" if finding.help else finding.message,
        severity=_SEVERITIES[finding.severity],
        code=finding.rule,
        source="truestep",
        related_information=related or None,
    )


def _unread(problem: Problem) -> lsp.Diagnostic:
    line = max(problem.line - 1, 0)
    at = lsp.Range(lsp.Position(line, 0), lsp.Position(line + 1, 0))
    level = lsp.DiagnosticSeverity.Error if problem.fails else lsp.DiagnosticSeverity.Warning
    return lsp.Diagnostic(at, problem.message, level, source="truestep")


def _action(
    opened: Opened, change: Change | None, kind: str, about: list[lsp.Diagnostic] | None
) -> lsp.CodeAction | None:
    """Return a change as an action; None without a change that can be made in the documents."""
    made = [] if change is None else opened.edits(change)
    if change is None or not made:
        return None
    return lsp.CodeAction(
        title=change.title,
        kind=kind,
        diagnostics=about,
        is_preferred=change.preferred or None,
        edit=lsp.WorkspaceEdit(document_changes=list(made)),
    )


def _wanted(kind: str, only: Iterable[str] | None) -> bool:
    """Return True if an editor asks for a kind of actions, or for one above it."""
    return not only or any(kind == one or kind.startswith(f"{one}.") for one in only)


def _before(one: lsp.Position, other: lsp.Position) -> bool:
    return (one.line, one.character) <= (other.line, other.character)
