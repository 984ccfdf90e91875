"""How Sphinx makes the site of pages.py's pages. Everything that a page needs lies on the site itself."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
# nbformat imports a library that compiles 38 grammars of web addresses, for 1.5 s, and does without it where it is not there.
sys.modules.setdefault("rfc3987_syntax", None)

project = "Attention, one step at a time"
extensions = ["myst_nb", "mathml", "terms"]
exclude_patterns = ["learner"]
language = "en"

nb_execution_mode = "off"  # the notebooks are run by `grader build`
nb_ipywidgets_js = {}  # what draws controls would come from elsewhere, and a page has no kernel
nb_number_source_lines = False
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
html_math_renderer = "mathml"

pygments_dark_style = "github-dark"

html_theme = "furo"
html_title = project
html_short_title = "Attention"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
html_theme_options = {
    "light_css_variables": {
        "color-brand-primary": "#00507c",
        "color-brand-content": "#00507c",
        "color-brand-visited": "#00507c",
    },
    "dark_css_variables": {
        "color-brand-primary": "#7fc1ea",
        "color-brand-content": "#7fc1ea",
        "color-brand-visited": "#7fc1ea",
    },
}


def setup(app):
    """Lets what is folded be called by its own words: the notebooks' template gives all of it the same label."""
    label = ' aria-label="Toggle hidden content"'
    app.connect(
        "html-page-context",
        lambda app, page, template, context, tree: context.update(body=context.get("body", "").replace(label, "")),
    )
