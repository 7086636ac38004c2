"""Settings of the documentation's site: `make docs` builds it into build/docs offline, warnings being errors.

Pages of prose are Markdown that a forge shows as well; pages that only the site needs are reStructuredText. The API
reference is read from docstrings, which are written to be read as they are; `as_restructured_text` makes of them what
Sphinx expects.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from sphinx.ext.napoleon import Config, NumpyDocstring

import fewfire

project, author, version = "fewfire", "The fewfire developers", fewfire.__version__
release, copyright = version, "2026, the fewfire developers"

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx_gallery.gen_gallery"]
source_suffix = {".rst": "restructuredtext", ".md": "markdown"}
exclude_patterns = ["examples", "**/README.*"]
nitpicky = False
# Words of a docstring's types are linked where they name one thing; "width" names several, which is no mistake.
# Settings that hold a function are not cached.
suppress_warnings = ["ref.python", "config.cache"]

# Anchors as a forge makes them from headings, six levels deep.
myst_heading_anchors = 6
myst_linkify_fuzzy_links = False

autodoc_default_options = {"inherited-members": True}
autodoc_member_order = "groupwise"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
maximum_signature_line_length = 100

html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["doors.css"]
html_title = f"fewfire {version}"
html_copy_source = False
html_show_sphinx = False
html_theme_options = {"navigation_with_keys": True}


def keep_figure(block: Any, variables: Any, settings: Any) -> str:
    """A figure of ours that ends a block becomes an image file; the first one is the example's thumbnail.

    The page itself shows the figure as a notebook does.
    """
    figure = variables["example_globals"].get("___")
    if isinstance(figure, Figure) and hasattr(figure, "_repr_png_"):
        Path(next(variables["image_path_iterator"])).write_bytes(figure._repr_png_())
    return ""


sphinx_gallery_conf = {
    "examples_dirs": "examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "image_scrapers": ("matplotlib", keep_figure),
    "capture_repr": ("_repr_html_", "__repr__"),
    "show_memory": False,
    "write_computation_times": False,  # a page of scripts from elsewhere
    "download_all_examples": False,
    "abort_on_example_error": True,
    "remove_config_comments": True,
    "within_subsection_order": "FileNameSortKey",
}

OURS = "fewfire"
SECTIONS = Config(napoleon_use_rtype=False, napoleon_use_param=False, napoleon_use_ivar=True)


def as_restructured_text(line: str) -> str:
    """A line of a docstring in which backticks mean code and every other mark means itself.

    >>> as_restructured_text("`Run`s with |w_j|*2")
    '``Run``\\\\ s with \\\\|w_j\\\\|\\\\*2'
    """
    parts = re.split(r"(`[^`]+`)", line)
    made = ""
    for part in parts:
        if part.startswith("`") and part.endswith("`") and len(part) > 2:
            joined = "\\ " if made[-1:].isalnum() else ""
            made += f"{joined}`{part}`"
            continue
        if made.endswith("``") and re.match(r"[\w(]", part):
            made += "\\ "
        made += re.sub(r"_(?!\w)", r"\\_", re.sub(r"([*|\\])", r"\\\1", part))
    return made


def rewrite_docstring(app: Any, what: str, name: str, thing: object, options: Any, lines: list[str]) -> None:
    """Every line that is no example becomes reStructuredText, and sections in numpydoc's form become lists of fields.

    Napoleon is called here instead of being an extension because it takes what stands before a colon in a property's
    docstring for its type.
    """
    made, example = [], False
    for line in lines:
        example = line.lstrip().startswith(">>>") or (example and bool(line.strip()))
        rule = re.fullmatch(r"\s*-{3,}\s*", line)
        made.append(line if example or rule else as_restructured_text(line))
    kind = "method" if what in ("property", "attribute", "data") else what
    lines[:] = NumpyDocstring(made, SECTIONS, app, kind, name, thing, options).lines()


def skip_what_others_wrote(app: Any, what: str, name: str, thing: object, skip: bool, options: Any) -> bool | None:
    """Methods that scikit-learn, PyTorch or Python itself put into a class are not ours to document."""
    if re.fullmatch(r"set_\w+_request", name):
        return True
    plain = getattr(thing, "fget", None) or getattr(thing, "func", None) or getattr(thing, "__func__", None) or thing
    module = getattr(plain, "__module__", None)
    if isinstance(thing, type) and thing.__name__.startswith("_"):
        return True
    if what in ("class", "exception") and not str(module).startswith(OURS):
        return True
    return None


def setup(app: Any) -> None:
    """Register these two with Sphinx."""
    app.connect("autodoc-process-docstring", rewrite_docstring)
    app.connect("autodoc-skip-member", skip_what_others_wrote)
