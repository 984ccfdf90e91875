"""`python docs/site OUT`: builds the site into OUT, from what lies in the repository. A warning, such as a dead link, ends it with 1.

A site that lies in OUT is replaced as a whole, once the new one is there; anything else in it is left, and nothing is built.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from pages import Stale, lay_out


def main(arguments: list[str]) -> int:
    try:
        from sphinx.cmd.build import main as sphinx
    except ImportError:
        print(
            "The site needs Sphinx: pip install -e '.[site]' -c constraints.txt, which `make site` does.",
            file=sys.stderr,
        )
        return 2
    if len(arguments) != 1:
        print("python docs/site OUT: names the folder for the site.", file=sys.stderr)
        return 2
    place = Path(arguments[0])
    if place.is_file() or (place.is_dir() and any(place.iterdir()) and not (place / ".buildinfo").is_file()):
        print(
            f"{place} contains something other than a site, so nothing was changed. Name a new or an empty folder.",
            file=sys.stderr,
        )
        return 2
    with tempfile.TemporaryDirectory() as scratch:
        source, made = Path(scratch) / "pages", Path(scratch) / "made"
        try:
            lay_out(source)
        except Stale as error:
            print(error, file=sys.stderr)
            return 1
        here = Path(__file__).resolve().parent
        code = sphinx(
            [
                "-b",
                "html",
                "-q",
                "-W",
                "--keep-going",
                "-c",
                str(here),
                "-d",
                f"{scratch}/doctrees",
                str(source),
                str(made),
            ]
        )
        if code == 0:  # else the site that was there stays
            shutil.rmtree(place, ignore_errors=True)
            shutil.copytree(made, place)
        return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
