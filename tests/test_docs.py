"""The documents: what the code cites is there, links lead somewhere, the committed rows are whole and small."""

import re
import subprocess
from pathlib import Path
from pkgutil import resolve_name

import pytest

from ddlcn.experiments.store import read_rows

ROOT = Path(__file__).parents[1]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
# docs/x.md, then any number of "Heading" or 2.1: parted by commas, brackets, "and".
CITATION = re.compile(r'(docs/\w+\.md)((?:(?:,| and|, and)? \(?(?:"[^"\n]+"|\d\.\d\b)\)?)*)')


def list_citations():
    """(file, document, heading or number or "") of every citation in the source."""
    found = set()
    for file in sorted((ROOT / "src").rglob("*")):
        if file.suffix in (".py", ".toml", ".html"):
            text = re.sub(r"\s*\n\s*(?:# )?", " ", file.read_text())
            for document, places in CITATION.findall(text):
                named = re.findall(r'"([^"]+)"|(\d\.\d)', places)
                found |= {(str(file.relative_to(ROOT)), document, a or b) for a, b in named or [("", "")]}
    return sorted(found)


def list_headings(document):
    """The headings of a document, with their number, without, and the number alone."""
    names = set()
    for line in re.findall(r"^#+ (.+)$", document.read_text(), flags=re.M):
        number, name = re.fullmatch(r"(?:(\d(?:\.\d)?)\.? )?(.+)", line).groups()
        names |= {line, name, number}
    return names


def test_what_the_code_cites_is_there():
    citations = list_citations()
    assert {place for _, document, place in citations if document == "docs/method.md"} >= {"Coding", "Pooling", "2.1"}
    for file, document, place in citations:
        assert (ROOT / document).exists(), f"{file} cites {document}"
        assert not place or place in list_headings(ROOT / document), f"{file} cites {document}, {place}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_relative_links_resolve(document):
    for link in re.findall(r"\]\(([^)\s]+)\)", document.read_text()):
        if not re.match(r"[a-z]+:", link):
            path, _, anchor = link.partition("#")
            target = document.parent / path if path else document
            assert target.exists(), f"{document.name} links to {link}"
            if anchor:
                slugs = {re.sub(r"[^\w\- ]", "", str(name).lower()).replace(" ", "-") for name in list_headings(target)}
                assert anchor in slugs, f"{document.name} links to {link}"


def test_files_that_the_method_names_exist():
    text = (ROOT / "docs" / "method.md").read_text()
    files = set(re.findall(r"`(?:ddlcn/)?((?:\w+/)*\w+\.py)`", text))
    assert len(files) > 20
    missing = [file for file in sorted(files) if not (ROOT / "src" / "ddlcn" / file).exists()]
    assert not missing


@pytest.mark.parametrize("document", DOCUMENTS[1:], ids=lambda path: path.name)
def test_modules_that_documents_name_exist(document):
    for name in re.findall(r"`(ddlcn(?:\.\w+)+)`", document.read_text()):
        resolve_name(name)


def test_figures_are_small():
    for figure in (ROOT / "docs" / "figures").glob("*.svg"):
        assert figure.stat().st_size < 60_000, figure.name


def test_nothing_points_to_a_page_outside_the_repository():
    word = "DES" + "IGN"
    found = subprocess.run(["git", "grep", "-nI", word, "--", "."], cwd=ROOT, capture_output=True, text=True)
    if found.returncode > 1:
        pytest.skip("not a git checkout")
    assert found.stdout == ""


def test_committed_rows_are_whole_and_small():
    folder = ROOT / "docs" / "results"
    rows = read_rows(folder)
    assert len({row.settings.make_key(row.seed) for row in rows}) == len(rows) >= 3185
    assert not any(row.settings.quick for row in rows)
    assert all(row.class_names for row in rows)
    assert sum(file.stat().st_size for file in folder.iterdir()) < 1_000_000
