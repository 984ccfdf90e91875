"""`python docs/site OUT`: builds the site into OUT, from what lies in the repository. A warning, such as a dead link, ends it with 1."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from pages import Stale, lay_out


def main(arguments: list[str]) -> int:
    try:
        from sphinx.cmd.build import main as sphinx
    except ImportError:
        print("The site needs Sphinx: pip install -e '.[site]' -c constraints.txt, which `make site` does.", file=sys.stderr)
        return 2
    if len(arguments) != 1:
        print("python docs/site OUT: names the folder for the site.", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as scratch:
        source = Path(scratch) / "pages"
        try:
            lay_out(source)
        except Stale as error:
            print(error, file=sys.stderr)
            return 1
        here = Path(__file__).resolve().parent
        return sphinx(["-b", "html", "-q", "-W", "--keep-going", "-c", str(here), "-d", f"{scratch}/doctrees", str(source), arguments[0]])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
