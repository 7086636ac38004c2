"""Write the public address of the repository where an index of packages and a reader of a release look for it.

    python tools/address.py https://forge.example/fewfire/fewfire [--raw ADDRESS-OF-FILES]

Once, before the first release: the links of `pyproject.toml`, `repository-code` of `CITATION.cff`, and in the README
the command that clones and the pictures, which an index shows only by their whole address. `--raw` is where a forge
gives files as they are; ADDRESS/raw/vVERSION unless given.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGES = {"Homepage": "", "Changelog": "/blob/main/CHANGELOG.md", "Issues": "/issues"}


def written(address: str, raw: str | None, folder: Path) -> dict[Path, str]:
    """The files as they are to be."""
    project, citation, readme = (folder / name for name in ("pyproject.toml", "CITATION.cff", "README.md"))
    settings = re.sub(r"\[project\.urls\]\n(?:.+\n)*\n", "", project.read_text(encoding="utf-8"))
    version = re.search(r'^version = "(.+)"$', settings, re.MULTILINE)
    files = raw or f"{address}/raw/v{version[1] if version else ''}"
    links = "".join(f'{name} = "{address}{page}"\n' for name, page in PAGES.items())
    settings = settings.replace("[project.scripts]\n", f"[project.urls]\n{links}\n[project.scripts]\n", 1)
    cited = re.sub(r"repository-code: .+\n", "", citation.read_text(encoding="utf-8"))
    cited = cited.replace("license: ", f'repository-code: "{address}"\nlicense: ', 1)
    text = re.sub(r"git clone \S.*? &&", f"git clone {address} &&", readme.read_text(encoding="utf-8"), count=1)
    text = re.sub(r'(src|srcset)="\S*?(docs/images/[^"]+)"', rf'\1="{files}/\2"', text)
    return {project: settings, citation: cited, readme: text}


def main(arguments: list[str] | None = None, folder: Path = ROOT) -> None:
    """Write them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("address")
    parser.add_argument("--raw")
    given = parser.parse_args(arguments)
    if not re.fullmatch(r"https://[^\s/]+/\S*[^\s/]", given.address):
        parser.error(
            f"address must be a whole one that begins with https:// and does not end in /; got {given.address!r}"
        )
    for path, text in written(given.address, given.raw, folder).items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
