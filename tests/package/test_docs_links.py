"""Links between the Markdown pages lead somewhere, as a forge shows them: files exist and headings make the anchors."""

import contextlib
import importlib
import inspect
import re
import runpy
from pathlib import Path
from urllib.parse import unquote

import pytest

import fewfire

ROOT = Path(__file__).resolve().parents[2]
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
TOOL = runpy.run_path(str(ROOT / "tools" / "docs.py"))


def plain(text):
    """Without what is code."""
    return re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.S)


def anchors(path):
    """Those that a forge makes from headings, and those that are written out."""
    text = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.S)
    made = []
    for heading in re.findall(r"^#+ (.*?)\s*$", text, re.M):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        slug = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        made.append(f"{slug}-{made.count(slug)}" if slug in made else slug)
    return {*made, *re.findall(r'(?:id|name)="([^"]+)"', text)}


def links(path):
    """Addresses of links and images inside the repository."""
    text = plain(path.read_text(encoding="utf-8"))
    found = re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(r'(?:src|srcset|href)="([^"]+)"', text)
    return [link for link in found if not re.match(r"[a-z]+:", link)]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(path):
    wrong = []
    for link in links(path):
        file, _, anchor = link.partition("#")
        target = (path.parent / unquote(file)).resolve() if file else path
        if not target.exists():
            wrong.append(f"{link}: no such file")
        elif anchor and target.suffix == ".md" and unquote(anchor) not in anchors(target):
            wrong.append(f"{link}: no such heading")
    assert wrong == []


def test_there_are_links_to_check():
    assert sum(len(links(path)) for path in PAGES) > 100


PACKAGES = "engines|fourier|halfspace|learners|networks|papers|problems|robustness|sweeps|tabular"
NAMED = re.compile(rf"`(?:fewfire\.|ff\.)?((?:{PACKAGES})(?:\.[A-Za-z]\w*)+)[(`]")


def test_names_of_the_package_exist():
    """Those in backquotes on pages of docs/ that begin with a package."""
    wrong = []
    for path in ROOT.glob("docs/**/*.md"):
        for name in sorted(set(NAMED.findall(path.read_text(encoding="utf-8")))):
            found = fewfire
            for part in name.split("."):
                if not hasattr(found, part) and inspect.ismodule(found):
                    with contextlib.suppress(ModuleNotFoundError):  # a module, such as papers.pareto.algorithms
                        importlib.import_module(f"{found.__name__}.{part}")
                found = getattr(found, part, None)
            wrong += [f"{path.name}: {name}"] if found is None else []
    assert wrong == []


def test_the_sites_own_check(tmp_path):
    """On a small site with one mistake of each kind."""
    (tmp_path / "a.html").write_text(
        '<title>Same</title><a href="b.html#there">1</a><a href="b.html#gone">2</a><a href="c.html">3</a><a href="https://x.org">4</a>'
        '<a href="#here">5</a><p id="here"></p><img src="https://x.org/i.png"><link rel="stylesheet" href="s.css">'
        '<link rel="author" href="https://x.org">'
    )
    (tmp_path / "b.html").write_text(
        '<title>Same</title><svg><title>other</title></svg><h1 id="there">T</h1><a href="a.html#here">a</a><a href="#">top</a>'
    )
    assert TOOL["problems"](tmp_path) == [
        "a.html and b.html have the title 'Same' both",
        "a.html loads https://x.org/i.png",
        "a.html links to b.html#gone: there is no such anchor",
        "a.html links to c.html: there is no such file",
    ]


READERS = re.compile(r"For (a |the |every)?(people|readers|researchers)\b")


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_page_is_short_and_names_its_readers(path):
    name, text = path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")
    by_hand = re.sub(r"<!-- Written by .*?<!-- The end of ", "", text, flags=re.S)
    assert len(by_hand.splitlines()) <= 250 or name in {"docs/results/figure4.md", "CHANGELOG.md"}
    if name in ("README.md", "SECURITY.md") or "```{include}" in text:
        return
    assert READERS.match(re.sub(r"\A# .*\n+", "", text)), "the first lines name the readers"


def test_a_page_of_the_reference_names_its_readers():
    for path in ROOT.glob("docs/api/*.rst"):
        assert READERS.match(path.read_text(encoding="utf-8").split("\n\n")[1]), path.name


def test_every_public_package_is_in_the_reference():
    told = set(re.findall(r"automodule:: (\S+)", "".join(p.read_text() for p in ROOT.glob("docs/api/*.rst"))))
    inner = {"fewfire.papers"}  # whose names are packages
    found = set()
    for path in (ROOT / "src").glob("fewfire/**/__init__.py"):  # read, not imported: torch alone takes seconds
        name = ".".join(path.relative_to(ROOT / "src").parts[:-1])
        if not re.search(r"\._", name) and "__all__ = " in path.read_text(encoding="utf-8"):
            found.add(name)
    assert found - told - inner - {"fewfire"} == ELSEWHERE


ELSEWHERE = {  # for those who work on the package, not with it
    "fewfire.engines.cuda",
    "fewfire.engines.jax",
}
