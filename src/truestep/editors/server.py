"""The Language Server Protocol: findings as a file is written, manual pages, fixes, comments that allow a rule."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from lsprotocol import types as lsp
from pygls import uris
from pygls.lsp.server import LanguageServer
from pygls.workspace import TextDocument

from truestep import __version__
from truestep.editors import edits
from truestep.editors.checked import Checked, Choice, checked
from truestep.editors.edits import Change
from truestep.errors import TrueStepError
from truestep.events import Site
from truestep.findings import Finding, Severity
from truestep.fixes.proposal import lines
from truestep.lint.results import Problem
from truestep.rules import rule
from truestep.rules._page import parse
from truestep.source import SourceFile

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
    made = LanguageServer("truestep", __version__)
    session = Session(made, choice)
    made.feature(lsp.TEXT_DOCUMENT_DID_OPEN)(_function(session.opened))
    made.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)(_function(session.changed))
    made.feature(lsp.TEXT_DOCUMENT_DID_SAVE)(_function(session.saved))
    made.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)(_function(session.closed))
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
    """The open files of an editor.

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

    async def changed(self, params: lsp.DidChangeTextDocumentParams) -> None:
        """Check a file once it has not changed for a moment."""
        uri = params.text_document.uri
        self._forget(uri)
        self._waiting[uri] = asyncio.get_running_loop().call_later(PAUSE_S, self._publish, uri)

    async def saved(self, params: lsp.DidSaveTextDocumentParams) -> None:
        """Check a file at once: the configuration may have changed too."""
        self._checked.pop(params.text_document.uri, None)
        self._publish(params.text_document.uri)

    async def closed(self, params: lsp.DidCloseTextDocumentParams) -> None:
        """Take the findings of a file from the editor's list."""
        uri = params.text_document.uri
        self._forget(uri)
        self._checked.pop(uri, None)
        self._server.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri, []))

    async def hover(self, params: lsp.HoverParams) -> lsp.Hover | None:
        """Return the findings at a place, with the manual pages of their rules."""
        document = self._document(params.text_document.uri)
        now = self._now(params.text_document.uri)
        for one in now.findings:
            place = _range(document, one.primary.site)
            if _before(place.start, params.position) and _before(params.position, place.end):
                text = f"**{one.rule}** ({one.confidence.value} confidence): {one.message}\n\n"
                text += f"*help:* {one.help}\n\n---\n\n"
                page = parse(rule(one.rule).__doc__ or "").markdown(level=4)
                return lsp.Hover(lsp.MarkupContent(lsp.MarkupKind.Markdown, text + page), place)
        return None

    async def actions(self, params: lsp.CodeActionParams) -> list[lsp.CodeAction]:
        """Return the changes that are offered at a place."""
        uri = params.text_document.uri
        document, now = self._document(uri), self._now(uri)
        found = []
        if _wanted(lsp.CodeActionKind.QuickFix, params.context.only):
            for one in now.at(params.range.start.line + 1, params.range.end.line + 1):
                about = [_diagnostic(document, one)]
                changes = (edits.fix(now.text, one), edits.allow(now.text, one))
                found += [
                    _action(document, change, lsp.CodeActionKind.QuickFix, about)
                    for change in changes
                    if change is not None
                ]
        if params.context.only and _wanted(FIX_ALL, params.context.only):
            every = edits.fix_all(now.text, now.findings)
            if every is not None:
                found.append(_action(document, every, FIX_ALL, None))
        return found

    def _publish(self, uri: str) -> None:
        self._forget(uri)
        document, now = self._document(uri), self._now(uri)
        shown = [_diagnostic(document, one) for one in now.findings] + [_unread(one) for one in now.problems]
        params = lsp.PublishDiagnosticsParams(uri, shown, document.version)
        self._server.text_document_publish_diagnostics(params)

    def _now(self, uri: str) -> Checked:
        """Return the findings in a file as it is in the editor."""
        document = self._document(uri)
        text, path = document.source, uris.to_fs_path(uri) or uri
        known = self._checked.get(uri)
        if known is None or known.text != text:
            try:
                known = checked(path, text, self._choice)
                complaint = "".join(f"internal error of the rule {one}" for one in known.errors)
            except TrueStepError as error:
                known, complaint = Checked(path, text), str(error)
            self._checked[uri] = known
            self._complain(complaint)
        return known

    def _complain(self, complaint: str) -> None:
        """Show an error once, not after each change."""
        if complaint and complaint != self._complaint:
            self._server.window_show_message(lsp.ShowMessageParams(lsp.MessageType.Error, f"truestep: {complaint}"))
        self._complaint = complaint

    def _document(self, uri: str) -> TextDocument:
        return self._server.workspace.get_text_document(uri)

    def _forget(self, uri: str) -> None:
        timer = self._waiting.pop(uri, None)
        if timer is not None:
            timer.cancel()


def _diagnostic(document: TextDocument, finding: Finding) -> lsp.Diagnostic:
    related = [
        lsp.DiagnosticRelatedInformation(lsp.Location(document.uri, _range(document, mark.site)), mark.label)
        for mark in finding.related
        if mark.site is not None
    ]
    return lsp.Diagnostic(
        range=_range(document, finding.primary.site),
        message=f"{finding.message}\nhelp: {finding.help}" if finding.help else finding.message,
        severity=_SEVERITIES[finding.severity],
        code=finding.rule,
        source="truestep",
        related_information=related or None,
    )


def _unread(problem: Problem) -> lsp.Diagnostic:
    line = max(problem.line - 1, 0)
    place = lsp.Range(lsp.Position(line, 0), lsp.Position(line + 1, 0))
    level = lsp.DiagnosticSeverity.Error if problem.fails else lsp.DiagnosticSeverity.Warning
    return lsp.Diagnostic(place, problem.message, level, source="truestep")


def _range(document: TextDocument, site: Site | None) -> lsp.Range:
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


def _action(document: TextDocument, change: Change, kind: str, about: list[lsp.Diagnostic] | None) -> lsp.CodeAction:
    replaced = []
    for first, count, new in change.hunks():
        start, end = lsp.Position(first - 1, 0), lsp.Position(first - 1 + count, 0)
        replaced.append(lsp.TextEdit(lsp.Range(start, end), "".join(new)))
    versioned = lsp.OptionalVersionedTextDocumentIdentifier(uri=document.uri, version=document.version)
    return lsp.CodeAction(
        title=change.title,
        kind=kind,
        diagnostics=about,
        is_preferred=change.preferred or None,
        edit=lsp.WorkspaceEdit(document_changes=[lsp.TextDocumentEdit(versioned, list(replaced))]),
    )


def _wanted(kind: str, only: Iterable[str] | None) -> bool:
    """Return True if an editor asks for a kind of actions, or for one above it."""
    return not only or any(kind == one or kind.startswith(f"{one}.") for one in only)


def _before(one: lsp.Position, other: lsp.Position) -> bool:
    return (one.line, one.character) <= (other.line, other.character)
