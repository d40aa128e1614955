"""The page as a file: its parts, texts of the user that stay texts, and nothing that a browser would load."""

import itertools
import re
import sys
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from lived import PATH, lived
from runs import MIXED, RUNS

from truestep.errors import PackageMissing, UnwritableFolder
from truestep.findings import Mark, PostMortem, Summary
from truestep.report.page.write_page import page, render, write

VOID = {"meta", "link", "input", "br", "img", "hr", "path"}
EVIL = "</script><script>alert(1)</script><img src=x onerror=alert(1)> & \"quoted\" 'too' {{ 7*7 }}"


class Document(HTMLParser):
    """The elements of a page: tags with their attributes, ids, and the texts of headings."""

    def __init__(self, html):
        super().__init__(convert_charrefs=True)
        self.tags, self.ids, self.headings, self.open, self.texts = [], [], [], [], []
        self.feed(html)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self.ids += [value for name, value in attributes if name == "id"]
        if tag not in VOID:
            self.open.append(tag)
        if re.fullmatch(r"h\d", tag):
            self.headings.append((tag, ""))

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and re.fullmatch(r"h\d", self.open[-1]):
            self.headings[-1] = (self.open[-1], self.headings[-1][1] + data)
        if self.open and self.open[-1] not in ("style", "script"):
            self.texts.append(data)

    def of(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]


def summaries():
    return {
        **{name: [summary] for name, summary in RUNS.items()},
        "lived": [lived(40, losses=[(0, 2.3), (20, 1.5)])],
        "mixed": [lived(40, clears=False, losses=[(0, 2.3), (20, 1.5)])],
        "unfinished": [lived(40, how="unfinished")],
        "two": [lived(40, record="runs/a"), lived(12, clears=False, record="runs/b")],
        "three": [RUNS["one"], RUNS["died"], lived(12)],
    }


@pytest.mark.parametrize(
    "name", ["died", "one", "clear", "many", "nothing", "lived", "mixed", "unfinished", "two", "three"]
)
def test_every_page_is_whole(name):
    document = Document(render(summaries()[name]))
    assert len(document.ids) == len(set(document.ids))
    links = [attributes["href"] for attributes in document.of("a")]
    inner = {link[1:] for link in links if link.startswith("#")}
    assert inner
    assert inner <= set(document.ids)
    levels = [int(tag[1]) for tag, _ in document.headings]
    assert levels.count(1) == 1
    assert levels[0] == 1
    assert all(second - first <= 1 for first, second in itertools.pairwise(levels))
    assert all(title.strip() for _, title in document.headings)


@pytest.mark.parametrize("name", ["many", "mixed", "two"])
def test_nothing_is_loaded(name):
    document = Document(render(summaries()[name]))
    policy = [one["content"] for one in document.of("meta") if one.get("http-equiv") == "Content-Security-Policy"]
    assert policy == ["default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"]
    assert not [one for _, one in document.tags if "src" in one]
    assert [one["href"] for one in document.of("link")] == ["data:,"]
    (style,) = re.findall(r"<style>(.*?)</style>", render(summaries()[name]), re.DOTALL)
    assert "url(" not in style
    assert "@import" not in style
    assert all(re.match(r"#|https?://", one["href"]) for one in document.of("a"))


def hostile():
    finding = replace(
        MIXED,
        message=f"`{EVIL}` {EVIL}",
        primary=Mark(MIXED.primary.site, EVIL),
        cost=EVIL,
        help=f"write {EVIL}:\n{EVIL}",
    )
    died = PostMortem("graph-freed", EVIL, EVIL, Mark(MIXED.primary.site, EVIL), facts=((EVIL, EVIL),), help=EVIL)
    run = lived(40, losses=[(0, 2.3), (20, 1.5)])
    run = replace(
        run, script=EVIL, findings=(finding,), post_mortem=died, internal_errors=(EVIL,), record=f"runs/{EVIL}"
    )
    run.timeline.objects.optimizers[1] = replace(run.timeline.objects.optimizers[1], kind=EVIL, name=EVIL)
    return run


@pytest.mark.parametrize("count", [1, 2])
def test_texts_of_the_user_stay_texts(programs, count):
    source = (programs / PATH).read_text(encoding="utf-8")
    (programs / PATH).write_text(source.replace("loss.backward()", f"loss.backward()  # {EVIL}"), encoding="utf-8")
    document = Document(render([hostile(), RUNS["one"]][:count]))
    assert [one for one in document.of("script") if "type" not in one] == [{}]
    assert not document.of("img")
    assert not [name for _, attributes in document.tags for name in attributes if name.startswith("on")]
    shown = "".join(document.texts)
    assert shown.count("{{ 7*7 }}") > 8
    assert "49" not in re.findall(r"too' (\S+)", shown)


def test_data_of_charts_cannot_end_its_script():
    html = render([lived(40, losses=[(0, 2.3), (20, 1.5)])])
    blocks = re.findall(r'<script type="application/json">(.*?)</script>', html, re.DOTALL)
    assert blocks == ["[[[0, 2.3], [20, 1.5]]]", "[[[0, 0.22999999999999998], [20, 0.15]]]"]


def test_code_with_other_characters(programs):
    (programs / PATH).write_bytes("loss = 'é \ud800'\n".encode("utf-8", "surrogatepass") * 50)
    file = programs / "page.html"
    write([lived(12), replace(lived(12), script="\udcff.py")], file)
    assert file.read_text(encoding="utf-8")


def test_the_order_of_the_page():
    titles = [title for tag, title in Document(render([lived(40, clears=False)])).headings if tag in ("h1", "h2")]
    expected = ["1 failure found", "Findings", "The annotated loop", "The score", "Curves", "Ledger", "Rules", "Manual"]
    assert titles == expected


def test_controls_and_scrolled_parts_are_reached_by_keyboard_and_named():
    document = Document(render([lived(40, clears=False, losses=[(0, 2.3), (20, 1.5)])]))
    scrolled = [one for _, one in document.tags if {"scroll", "code", "plot"} & set(one.get("class", "").split())]
    assert len(scrolled) > 5
    assert all(one.get("tabindex") == "0" for one in scrolled)
    assert all(one.get("aria-label") for one in scrolled)
    assert all("aria-pressed" in one and one["type"] == "button" for one in document.of("button"))
    assert document.of("html")[0]["lang"] == "en"
    assert all(one.get("scope") for one in document.of("th"))


def test_manual_pages_are_those_that_the_page_names():
    shown = page([lived(40, clears=False)])
    named = {manual.rule for manual in shown.manuals}
    assert "missing-zero-grad" in named
    assert "clip-after-step" not in named
    assert named >= {"scheduler-wrong-cadence", "backward-passes-discarded"}


def test_a_file_that_cannot_be_written(programs):
    with pytest.raises(UnwritableFolder, match="the page cannot be written"):
        write([RUNS["one"]], programs / "train.py" / "page.html")


def test_the_file_is_written_with_its_folder(programs):
    assert write([RUNS["one"]], programs / "new" / "page.html").startswith("wrote the page new")
    assert (programs / "new" / "page.html").read_text(encoding="utf-8").startswith("<!doctype html>")


def test_without_jinja2(monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(PackageMissing, match="needs Jinja2"):
        render([Summary("train.py", "finished", 1)])
