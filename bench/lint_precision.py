"""Findings of `truestep lint` on other people's code, which the project does not hold, joined with their judgements.

    python bench/lint_precision.py FOLDER...          print the findings that were not read yet
    python bench/lint_precision.py FOLDER... --save   write bench/results/lint_precision.md

A folder holds one folder for each repository, with its commit in `.commit`, or installed packages. Judgements are in
bench/results/lint_precision.toml: each was made by reading the source at the finding.
"""

from __future__ import annotations

import argparse
import json
import sys
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from truestep.findings import Confidence
from truestep.lint.checking import check
from truestep.lint.engine import Code, inspecting, read_code

ROOT = Path(__file__).resolve().parents[1]
JUDGEMENTS = ROOT / "bench" / "results" / "lint_precision.toml"
RESULTS = ROOT / "bench" / "results" / "lint_precision.md"
PEERS = ROOT / "bench" / "results" / "lint_peers.json"
VERDICTS = ("right", "arguable", "wrong")
Key = tuple[str, str, str]


@dataclass(frozen=True)
class Found:
    """A finding, with the repository or package that it is in."""

    origin: str
    place: str
    rule: str
    confidence: Confidence
    message: str

    @property
    def key(self) -> Key:
        """Return the origin, place and rule, which a judgement names."""
        return self.origin, self.place, self.rule


@dataclass(frozen=True)
class Judgement:
    """The judgement of a finding by a reader of its source."""

    verdict: str
    reason: str
    confidence: Confidence


@dataclass
class Corpus:
    """Findings in all files, and the numbers of files."""

    findings: list[Found]
    versions: dict[str, str]
    files: int = 0
    training: int = 0
    """Files that call `backward`."""
    errors: tuple[str, ...] = ()


def main() -> int:
    """Run the command; exit code 1 if a finding was not read."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=Path, nargs="+", metavar="FOLDER", help="repositories or packages")
    parser.add_argument("--save", action="store_true", help=f"write {RESULTS.relative_to(ROOT)}")
    options = parser.parse_args()
    corpus, judged = read(options.folders), judgements()
    unread = [one for one in corpus.findings if one.confidence is not Confidence.LOW and one.key not in judged]
    for one in unread:
        print(f"{one.origin} {one.place} {one.rule} ({one.confidence.value}): {one.message}")
    print(f"{len(unread)} findings not read, {corpus.files} files, {corpus.training} of training code", file=sys.stderr)
    print(*corpus.errors, sep="\n", file=sys.stderr)
    if options.save:
        RESULTS.write_text(text(corpus, judged), encoding="utf-8")
    return 1 if unread else 0


def read(folders: Iterable[Path]) -> Corpus:
    """Return the findings in the Python files and notebooks below some folders."""
    corpus = Corpus([], {})
    rules = tuple(inspecting().values())
    for folder in (below for one in folders for below in sorted(one.iterdir()) if below.is_dir()):
        name = folder.name.replace("+", "/", 1)
        corpus.versions[name] = _version(folder)

        def codes(folder: Path = folder) -> Iterator[Code]:
            for path in sorted((*folder.rglob("*.py"), *folder.rglob("*.ipynb"))):
                code = read_code(path)
                if isinstance(code, Code):
                    corpus.files += 1
                    corpus.training += ".backward(" in code.text
                    yield code

        results = check(codes(), rules)
        corpus.errors += results.internal_errors
        for one in results.findings:
            site = one.primary.site
            assert site is not None
            place = f"{Path(site.path).relative_to(folder).as_posix()}:{site.line}"
            corpus.findings.append(Found(name, place, one.rule, one.confidence, one.message))
    corpus.findings.sort(key=lambda one: one.key)
    return corpus


def _version(folder: Path) -> str:
    commit = folder / ".commit"
    if commit.is_file():
        return commit.read_text(encoding="utf-8").split()[0][:12]
    try:
        return metadata.version({"ignite": "pytorch-ignite"}.get(folder.name, folder.name))
    except metadata.PackageNotFoundError:
        return ""


def judgements() -> dict[Key, Judgement]:
    """Return the judgements by origin, place and rule."""
    found = {}
    for one in tomllib.loads(JUDGEMENTS.read_text(encoding="utf-8"))["judged"]:
        if one["verdict"] not in VERDICTS:
            raise SystemExit(f"{JUDGEMENTS}: verdict must be one of {', '.join(VERDICTS)}, got {one['verdict']}")
        for place in one["places"]:
            found[one["origin"], place, one["rule"]] = Judgement(
                one["verdict"], one["reason"], Confidence(one["confidence"])
            )
    return found


def text(corpus: Corpus, judged: dict[Key, Judgement]) -> str:
    """Return the page of results."""
    now = [one for one in corpus.findings if one.key in judged and one.confidence is not Confidence.LOW]
    present = {one.key for one in now}
    mended = {key: one for key, one in judged.items() if one.verdict == "wrong" and key not in present}
    low = Counter(one.rule for one in corpus.findings if one.confidence is Confidence.LOW)
    lines = [
        "# Precision of `truestep lint`",
        "",
        "Written by `python bench/lint_precision.py FOLDER... --save`; the judgements are in `lint_precision.toml`.",
        "",
        f"{corpus.files} files of {len(corpus.versions)} repositories and packages, {corpus.training} of them call "
        f"`backward`. Each finding of high and medium confidence was read in its source. {len(mended)} findings of "
        "earlier versions were wrong and are gone: the causes were mended, so the shares below are of code that the "
        "rules were improved with.",
        "",
        "| confidence | findings | right | arguable | wrong | precision | by repository and rule | precision |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    levels = (Confidence.HIGH, Confidence.MEDIUM)
    lines += [_level(level, [one for one in now if one.confidence is level], judged) for level in levels]
    before = Counter((one.confidence, one.verdict) for one in judged.values())
    for level in levels:
        counts = {verdict: before[level, verdict] for verdict in VERDICTS}
        lines.append(
            f"| {level.value}, with the mended ones | {sum(counts.values())} | {counts['right']} | "
            f"{counts['arguable']} | {counts['wrong']} | {_share(counts)} | | |"
        )
    notices = Counter(
        (one.rule, judged[one.key].verdict)
        for one in corpus.findings
        if one.confidence is Confidence.LOW and one.key in judged
    )
    lines += [
        "",
        "An arguable finding states a fact, and the author may have meant it. Precision counts it as not right. One "
        "repository can repeat a mistake in many files: the last columns count each rule once in each repository, as "
        "wrong if one of its findings is.",
        "",
        f"Low confidence, not shown by default: "
        f"{', '.join(f'{rule} {count}' for rule, count in low.most_common()) or 'nothing'}. Of these were read: "
        f"{', '.join(f'{rule} {count} {verdict}' for (rule, verdict), count in sorted(notices.items())) or 'none'}.",
        "",
        "| rule | confidence | findings | right | arguable | wrong |",
        "| --- | --- | ---: | ---: | ---: | ---: |",
    ]
    rows: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for one in now:
        rows[one.rule, one.confidence.value][judged[one.key].verdict] += 1
    for (rule, level_name), verdicts in sorted(rows.items()):
        shown = " | ".join(str(verdicts[verdict]) for verdict in VERDICTS)
        lines.append(f"| `{rule}` | {level_name} | {verdicts.total()} | {shown} |")
    lines += ["", "## Findings", "", "| repository | place | rule | confidence | judgement | reason |"]
    lines.append("| --- | --- | --- | --- | --- | --- |")
    for one in now:
        said = judged[one.key]
        lines.append(_row(one.key, one.confidence.value, said, corpus.versions))
    lines += ["", "## Wrong in earlier versions", "", "| repository | place | rule | confidence | judgement | reason |"]
    lines.append("| --- | --- | --- | --- | --- | --- |")
    lines += [_row(key, said.confidence.value, said, corpus.versions) for key, said in sorted(mended.items())]
    lines += _peers()
    lines += ["", "## Read", "", ", ".join(f"{name} {version}".strip() for name, version in corpus.versions.items())]
    return "\n".join(lines) + "\n"


def _peers() -> list[str]:
    """Return the table of other linters, as bench/lint_peers.py measured it."""
    known = json.loads(PEERS.read_text(encoding="utf-8"))
    first = next(iter(known.values()))
    lines = [
        "",
        "## Beside other linters",
        "",
        f"Measured by `bench/lint_peers.py` on the broken programs of the {first['proofs']} proofs and on "
        f"{first['files']} files of training code drawn from the corpus. A proof is found if a finding is about its "
        "failure. The other linters ask other questions too (deprecated names, workers, seeds, unsafe loading): their "
        "findings on files were counted by code, not judged.",
        "",
        "| linter | findings on proofs | proofs found | findings on files | most frequent | CPU s: proofs | files |",
        "| --- | ---: | ---: | ---: | --- | ---: | ---: |",
    ]
    for name, one in known.items():
        frequent = ", ".join(f"{code} {count}" for code, count in list(one["by code on files"].items())[:3])
        lines.append(
            f"| {name} | {one['findings on proofs']} | {one['proofs found']} | {one['findings on files']} | "
            f"{frequent} | {one['cpu s on proofs']} | {one['cpu s on files']} |"
        )
    return lines


def _level(level: Confidence, findings: list[Found], judged: dict[Key, Judgement]) -> str:
    counts = {verdict: sum(judged[one.key].verdict == verdict for one in findings) for verdict in VERDICTS}
    groups: dict[tuple[str, str], str] = {}
    for one in findings:
        key = (one.origin, one.rule)
        groups[key] = max(groups.get(key, "right"), judged[one.key].verdict, key=VERDICTS.index)
    grouped = Counter(groups.values())
    return (
        f"| {level.value} | {len(findings)} | {counts['right']} | {counts['arguable']} | {counts['wrong']} | "
        f"{_share(counts)} | {len(groups)} | {_share(grouped)} |"
    )


def _share(counts: dict[str, int]) -> str:
    total = sum(counts.values())
    return f"{100 * counts['right'] / total:.1f} %" if total else ""


def _row(key: Key, level: str, said: Judgement, versions: dict[str, str]) -> str:
    origin, place, rule = key
    version = versions.get(origin, "")
    return f"| {origin} {version} | `{place}` | `{rule}` | {level} | {said.verdict} | {said.reason} |"


if __name__ == "__main__":
    sys.exit(main())
