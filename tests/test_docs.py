"""What the documents show runs as it stands, files that they name are there, and pages that are made are right."""

import ast
import importlib.util
import inspect
import json
import re
import tomllib
from pathlib import Path

import pytest
from numpydoc.docscrape import NumpyDocString
from PIL import Image

import mercer

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
# Pages under these are made by the build, of what is tested elsewhere.
MADE = {"api", "gallery", "results", "_generated", "_build"}
PAGES = [path for path in sorted(DOCS.glob("**/*.md")) if not MADE & set(path.relative_to(DOCS).parts[:-1])]
DOCUMENTS = [*sorted(ROOT.glob("*.md")), *PAGES]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
FIGURES = "_generated"


def script(name):
    """Import a script of the folder docs, which is no package."""
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def blocks_of(path):
    return BLOCK.findall(path.read_text())


def with_code(paths):
    return [path for path in paths if blocks_of(path)]


@pytest.fixture
def no_windows():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


@pytest.mark.parametrize(
    "block",
    [
        pytest.param(block, id=f"{path.name}-{i}")
        for path in sorted(ROOT.glob("*.md"))
        for i, block in enumerate(blocks_of(path))
    ],
)
def test_code_blocks_of_the_root_run_each_by_itself(block, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(compile(block, "block", "exec"), {})


@pytest.mark.parametrize("path", with_code(PAGES), ids=lambda path: path.stem)
def test_code_blocks_of_a_page_run_in_order(path, tmp_path, monkeypatch, no_windows):
    monkeypatch.chdir(tmp_path)
    namespace = {}
    for i, block in enumerate(blocks_of(path)):
        exec(compile(block, f"{path.name}, block {i}", "exec"), namespace)
    shows_figure = f"({FIGURES}/{path.stem}.png)" in path.read_text()
    assert shows_figure == (tmp_path / "figure.png").exists(), "a page shows the figure that it saves, and no other"


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(path):
    targets = re.findall(r"\]\(([^)#]+)[^)]*\)", path.read_text())
    made = [t for t in targets if t.startswith(FIGURES)]
    assert set(made) <= {f"{FIGURES}/{path.stem}.png"}, "a page shows its own figure"
    assert not [t for t in targets if "://" not in t and t not in made and not (path.parent / t).exists()]


def test_every_kept_figure_is_shown_somewhere():
    text = "".join(path.read_text() for path in DOCUMENTS)
    unused = [path.name for path in (DOCS / "figures").glob("*.png") if f"figures/{path.name})" not in text]
    assert not unused, (
        "pages show all figures of docs/figures; those of the reproduction and the gallery are made pages'"
    )


def test_the_readme_and_the_questions_have_code():
    assert blocks_of(ROOT / "README.md")
    questions = {"which-inputs", "how-sure", "classes", "representations", "groups"}
    assert questions <= {path.stem for path in with_code(PAGES) if "figure.png" in blocks_of(path)[-1]}


def test_every_page_is_in_the_contents():
    contents = "\n".join(re.findall(r"```\{toctree\}\n(.*?)```", (DOCS / "index.md").read_text(), re.DOTALL))
    assert {path.stem for path in PAGES} - set(contents.split()) == {"index"}


def test_docstrings_become_restructured_text():
    convert = script("plain_docstrings").as_restructured_text
    assert convert(["|x - z|_M of x_ and `a_b` and a*b, in K_mm"]) == [
        r"\|x - z\|_M of x\_ and `a_b` and a\*b, in K_mm"
    ]
    assert convert(["Solve", "", "    |a| = b", "", "now"]) == ["Solve", "", "::", "", "    |a| = b", "", "now"]
    assert convert([">>> a * b_", "x_"]) == [">>> a * b_", "x_"]
    assert convert([">>> a", "", "x_"]) == [">>> a", "", r"x\_"]
    assert convert(["These:", "", "    - one", "    - two"]) == ["These:", "", "    - one", "    - two"]


def test_the_reference_has_every_public_name(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(DOCS))
    api = script("make_api")
    monkeypatch.setattr(api, "FOLDER", tmp_path / "api")
    api.main()
    pages = {path.stem: path.read_text() for path in (tmp_path / "api").glob("*.rst")}
    assert set(mercer.__all__) <= set(pages)
    assert ":members: add_classes, decision_function, fit," in pages["KernelDiscriminant"]
    assert "set_score_request" not in pages["KernelDiscriminant"], "scikit-learn's own"
    assert "set_output" in pages["TabularModel"], "Mercer's own"
    assert re.findall(r":: (\S+)", pages["agop"]) == [
        "mercer.agop",
        "mercer.agop.predictor_gradients",
        "mercer.agop.agop",
        "mercer.agop.next_metric",
    ]
    for module in ("agop", "losses", "plots"):
        names = [name for name, _ in api.public_names(getattr(mercer, module))]
        assert names
        assert all(f":: mercer.{module}.{name}\n" in pages[module] for name in names)
    assert {path.removeprefix("api/") for path in re.findall(r"api/\S+", (DOCS / "api.md").read_text())} <= set(pages)
    monkeypatch.setitem(api.FAMILIES, "Tables", ("tabular",))
    with pytest.raises(SystemExit, match="GPRegressor"):
        api.main()


def a_report(**changes):
    claim = {"text": "a|b", "paper": 0.5, "mean": 0.123456, "spread": 0.01, "values": [0.1, 0.2], "status": "not held"}
    case = {"case": "one", "seeds": 2, "done": 2, "seconds": 3.4, "measures": {"error": [0.1, 0.2], "note": ["x", "x"]}}
    table = {"title": "Its own", "columns": ["k"], "rows": [["v"]]}
    report = {
        "experiment": "toy",
        "title": "A toy",
        "claims": [claim | {"reason": "why not"}],
        "tables": [table],
        "cases": [case, case | {"case": "two", "done": 0}],
        "remaining": 0,
        "versions": {"torch": ["1", "2"]},
    }
    return report | changes


def test_results_are_made_of_reports():
    text = script("make_results").page(a_report())
    assert "| a\\|b | 0.5 | 0.1235 | ± 0.01, 2 seeds | **not held** | why not |" in text
    assert "Of 1 claims 0 held and 1 did not" in text
    assert "torch 1 and 2" in text
    assert "## Its own\n\n| k |\n| --- |\n| v |" in text
    assert "| one | 2 of 2 | 3 | error 0.15; note x |" in text
    assert "| two" not in text, "a case that was not run has nothing to say"


def test_long_texts_are_cut_between_words():
    results = script("make_results")
    assert results.shortened("a b") == "a b"
    cut = results.shortened("word " * 100)
    assert cut.endswith("word …")
    assert len(cut) <= results.LONGEST_TEXT + 2


def test_reports_of_this_machine_come_first_and_can_be_kept(tmp_path, monkeypatch):
    results = script("make_results")
    fresh, kept = tmp_path / "fresh", tmp_path / "kept"
    for folder, titles in ((fresh, {"a": "new"}), (kept, {"a": "old", "b": "kept"})):
        folder.mkdir()
        for name, title in titles.items():
            (folder / f"{name}-full.json").write_text(json.dumps(a_report(title=title)))
    (fresh / "c-quick.json").write_text("{}")
    (kept / "gone.md").write_text("of a report that is no more")
    for name, value in (("FRESH", fresh), ("KEPT", kept), ("DOCS", tmp_path / "docs")):
        monkeypatch.setattr(results, name, value)
    monkeypatch.setattr("sys.argv", ["make_results.py"])
    results.main()
    assert {path.name: path.read_text().split("\n")[0] for path in kept.glob("*.md")} == {
        "a.md": "# new",
        "all-claims.md": "# Reproduction report",
        "b.md": "# kept",
    }
    assert json.loads((kept / "a-full.json").read_text())["title"] == "old"
    monkeypatch.setattr("sys.argv", ["make_results.py", "--keep"])
    results.main()
    assert json.loads((kept / "a-full.json").read_text())["title"] == "new"


@pytest.mark.parametrize("path", sorted((DOCS / "results").glob("*.json")), ids=lambda path: path.stem)
def test_kept_reports_are_of_full_runs_and_make_a_page(path):
    report = json.loads(path.read_text())
    assert (report["mode"], path.name) == ("full", f"{report['experiment']}-full.json")
    assert script("make_results").page(report).startswith(f"# {report['title']}\n")


def test_the_report_over_all_papers_has_every_claim_and_no_number_that_is_in_no_file():
    results = script("make_results")
    reports = {name: json.loads(path.read_text()) for name, path in results.found_reports(DOCS / "results").items()}
    text = results.reproduction_page(reports)
    rows = [line.split(" | ") for line in text.splitlines() if line.startswith("| ")]
    claims = [row for row in rows if len(row) == len(results.PLACES) and row[0] not in ("| where", "| ---")]
    entries = tomllib.loads((ROOT / "experiments" / "claims_of_the_papers.toml").read_text())
    assert len(claims) == len(entries["claim"])
    means = {f"{c['mean']:.3g}" for r in reports.values() for c in r["claims"] if isinstance(c["mean"], float)}
    for row in claims:
        ours = row[3].strip()
        assert ours in ("", "by test") or re.fullmatch(r"\d+ of \d+", ours) or ours in means, row
    assert all(entry["what"] in text for entry in entries["left_out"])


def test_pages_of_results_say_what_was_left_out_and_where_runs_come_from():
    results = script("make_results")
    case = a_report()["cases"][0]
    cases = [case | {"commit": "abc", "machine": "Linux, 2 cores"}, case]
    text = results.page(a_report(experiment="rfm_and_ard", cases=cases))
    assert "## Design" in text
    assert "The experiment is smaller than the paper's" in " ".join(text.split())
    assert "Of commit abc (early lines say none); machine Linux, 2 cores (early lines say none)." in text
    assert results.design("no such experiment") == ""


@pytest.mark.parametrize("name", ["kernel_discriminant", "krepes", "krepes_as_printed", "rfm_and_ard"])
def test_no_run_is_open_without_its_reason(name):
    """Where a kept report lacks runs, the design of the experiment says which and why."""
    path = DOCS / "results" / f"{name}-full.json"
    if not path.exists():
        pytest.skip("no report is kept")
    report, design = json.loads(path.read_text()), " ".join(script("make_results").design(name).split())
    open_runs = sum(case["seeds"] - case["done"] for case in report["cases"])
    assert not open_runs or "What the kept report lacks, and why" in design


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.py")), ids=lambda path: path.stem)
def test_gallery_pages_have_all_of_the_code(path):
    gallery = script("make_gallery")
    source = path.read_text()
    text = gallery.page(path, "printed so\n")
    assert ast.unparse(ast.parse("\n".join(BLOCK.findall(text)))) == ast.unparse(ast.parse(source).body[1:])
    assert text.startswith(f"# {ast.get_docstring(ast.parse(source)).splitlines()[0]}\n")
    assert "```text\nprinted so\n```" in text
    assert all(part[:2] != "# " for kind, part in gallery.parts_of(source) if kind == "prose")


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.py")), ids=lambda path: path.stem)
def test_the_readme_shows_every_example_by_its_question(path):
    question = ast.get_docstring(ast.parse(path.read_text())).splitlines()[0]
    shown = f"[![{question}](docs/figures/gallery/{path.stem}.png)](examples/{path.name}) {question} |"
    assert shown in (ROOT / "README.md").read_text()


def test_the_readme_is_short_enough_to_be_read():
    assert len((ROOT / "README.md").read_text()) <= 10_000


def test_small_copies_of_figures_are_small(tmp_path, monkeypatch):
    gallery = script("make_gallery")
    monkeypatch.setattr(gallery, "SMALL", tmp_path / "small")
    Image.effect_noise((1000, 720), 50).save(tmp_path / "wide.png")
    gallery.keep_small(tmp_path / "wide.png")
    assert Image.open(tmp_path / "small" / "wide.png").size == (500, 360)


def test_dead_links_of_built_pages_are_found(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "a.html").write_text(
        '<h1 id="top"></h1><a href="sub/b.html#here">.</a><a href="#top">.</a><img src="a%20b.png"><a href="https://x.y/z.html">.</a>'
    )
    (tmp_path / "a b.png").write_text("")
    (tmp_path / "sub" / "b.html").write_text(
        '<p id="here"></p><a href="../a.html">.</a><a href="../c.html">.</a><a href="#no">.</a>'
    )
    assert list(script("check_links").missing(tmp_path)) == ["sub/b.html -> ../c.html", "sub/b.html -> #no"]


@pytest.mark.parametrize("name", [name for name in mercer.__all__ if inspect.isclass(getattr(mercer, name))])
def test_docstrings_are_indented_evenly(name):
    """An assembled docstring may have a part at another indentation, which then belongs to the entry before it."""
    document = NumpyDocString(inspect.getdoc(getattr(mercer, name)))
    for section in ("Parameters", "Attributes"):
        for entry in document[section]:
            assert all(part.strip("*").isidentifier() for part in entry.name.split(", ")), entry.name
            assert not any(re.match(r"\w+_ : ", line) for line in entry.desc), entry.desc
