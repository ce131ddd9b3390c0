"""Settings of the site: the notebooks where they lie, as pages with live panels."""

import re

import cells
import front_page
import metadata
import reference
from sphinx.builders.html import StandaloneHTMLBuilder

from tools.notebooks import NOTEBOOKS, all_notebooks

project = "What will it take?"
author = "The llmtrain_helpers authors"
copyright = "The llmtrain_helpers authors. Text CC BY 4.0, code MIT"

extensions = ["myst_nb", "sphinx.ext.autodoc"]
root_doc = "notebooks/00_start_here"
include_patterns = [path.relative_to(NOTEBOOKS.parent).as_posix() for path in all_notebooks()]
include_patterns += ["data/README.md", "TEACHING.md", "teaching/*.md", "site/helpers.md"]
include_patterns += [f"{reference.SOURCES}/*.rst"]
exclude_patterns = [".*", "**/.*", "build/site"]

nb_execution_mode = "off"  # outputs are committed, and tested by nbval
myst_enable_extensions = ["amsmath", "dollarmath"]
myst_heading_anchors = 4
myst_heading_slug_func = "cells.slug"
default_role = "py:obj"  # of docstrings: a name in backticks leads to its entry
maximum_signature_line_length = 80
autodoc_default_options = {"members": True, "member-order": "bysource"}
add_module_names = toc_object_entries = False
html_domain_indices = False
html_math_renderer = "tex"  # `prerender` sets them

html_theme = "sphinx_book_theme"
html_title = project
html_static_path = ["static", "../llmtrain_course/kit/face"]
html_css_files = ["face.css", "live.css"]
html_js_files = [("live.js", {"type": "module"})]
html_context = {"default_mode": "auto", "source": metadata.SOURCE, **front_page.citation()}
templates_path = ["templates"]  # header and footer are the front page's
html_sidebars = {"**": ["sbt-sidebar-nav.html"]}
html_favicon = "static/mark.svg"
html_use_index = False
html_additional_pages = {"search": "search.html"}
html_copy_source = False
html_show_sphinx = False
html_theme_options = {
    "show_toc_level": 2,
    "disable_search": True,
    "back_to_top_button": False,
    "navigation_with_keys": False,
    "use_download_button": False,
    "use_fullscreen_button": False,
    "show_navbar_depth": 1,
    "home_page_in_toc": True,
    "article_header_start": [],
    "article_header_end": [],
    "navbar_start": [],
    "navbar_center": [],
    "navbar_end": [],
    "navbar_persistent": [],
}


class Pages(StandaloneHTMLBuilder):
    """A chapter's page goes by its word: the notebook 10_plan is the page plan.html."""

    search = False  # it's Pagefind's

    def get_target_uri(self, docname, typ=None):
        """Return the address that links to a page have."""
        return super().get_target_uri(word_of(docname), typ)

    def get_output_path(self, page_name):
        """Return the file that a page is written to."""
        return super().get_output_path(word_of(page_name))


def word_of(docname):
    """Leave out the number that a notebook's name begins with, and the folder of what we write."""
    return re.sub(r"(?<![^/])\d\d_|build/(?=reference)", "", docname)


def setup(app):
    """Add what the pages need beside the notebooks."""
    app.add_builder(Pages, override=True)
    cells.setup(app)
    reference.setup(app)
