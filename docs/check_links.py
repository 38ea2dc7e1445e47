"""Find broken links and images in the built pages: missing files, and missing anchors in them."""

import sys
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

BUILT = Path(__file__).resolve().parent / "_build" / "html"
# Pages that Sphinx's theme generates, with links that a script fills in.
NO_PAGES = ("_static", "_modules")


class Page(HTMLParser):
    """The links of a page, and the anchors in it that can be linked to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.places: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("href", "src") and value:
                self.targets.append(value)
            elif name == "id" and value:
                self.places.add(value)


@cache
def read_page(path: Path) -> Page:
    return Page(path.read_text(encoding="utf-8"))


def missing(folder: Path) -> Iterator[str]:
    """Yield "page -> target" for each broken link of the pages in a folder; links to the web are not checked."""
    for path in sorted(folder.rglob("*.html")):
        if path.relative_to(folder).parts[0] in NO_PAGES:
            continue
        for target in read_page(path).targets:
            link = urlsplit(target)
            if link.scheme or link.netloc:
                continue
            place = path if not link.path else (path.parent / unquote(link.path)).resolve()
            gone = not place.is_file()
            if not gone and link.fragment and place.suffix == ".html":
                gone = unquote(link.fragment) not in read_page(place).places
            if gone:
                yield f"{path.relative_to(folder)} -> {target}"


def main() -> None:
    """Print the broken links; the exit code is 1 if there are any."""
    found = list(missing(Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else BUILT))
    print("\n".join(found) if found else "every link of the built pages leads somewhere")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
