"""`mercer reproduce`: the experiments of a checkout, run and told in one table."""

import json
import re
import sys

import pytest
from typer.testing import CliRunner

from experiments import reproduction
from experiments.runner import UsageError
from mercer.app.cli import checkout
from mercer.app.cli.app import app

PAPER = '''"""{line}"""
from experiments import Case, Claim, Experiment

def work(settings, seed):
    {work}

def score(r):
    return r.values("a", "score")

CLAIMS = [
    Claim("a reaches two", 2.5, score, lambda r: r.mean("a", "score") >= 2, "too few rows"),
    Claim("a reaches one", 1.0, score, lambda r: r.mean("a", "score") >= 1),
    Claim("a reaches nine", 9.0, score, lambda r: r.mean("a", "score") >= 9),
    Claim("a beside b", None, score),
    Claim("of the full mode", "85 %", lambda r: r.values("large", "score"), lambda r: True),
]
EXPERIMENT = Experiment("{name}", "The {name} paper", lambda quick: [Case("{case}", work, {{"quick": quick}}, 2)],
                        CLAIMS)
'''


def write_paper(root, name, work='return {"score": 1 + seed, "seconds": 3}', case="a"):
    folder = root / "experiments" / name
    folder.mkdir(parents=True)
    text = PAPER.format(name=name, line=f"What {name} is about.", work=work, case=case)
    (folder / "experiment.py").write_text(text)


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """A source tree with one paper, from a folder of which the command is called."""
    root = tmp_path / "tree"
    for file in ("experiments/runner.py", "src/mercer/__init__.py"):
        (root / file).parent.mkdir(parents=True)
        (root / file).touch()
    write_paper(root, "first_paper")
    (root / "docs").mkdir()
    monkeypatch.chdir(root / "docs")
    monkeypatch.setattr(sys, "path", list(sys.path))
    return root


def mercer(*arguments, width=100):
    return CliRunner().invoke(app, ["reproduce", *map(str, arguments)], env={"COLUMNS": str(width)})


def done(*arguments, **options):
    result = mercer(*arguments, **options)
    assert result.exit_code == 0, result.output
    return result


def row(shown, claim):
    """Return the cells of the table's line of a claim, without the lines between them."""
    line = next(line for line in shown.splitlines() if f"│ {claim}" in line)
    return [cell.strip() for cell in line.strip("│").split("│")]


def test_the_list_imports_no_experiment(tree):
    (tree / "experiments" / "first_paper" / "experiment.py").write_text('"""What it is."""\nraise RuntimeError')
    shown = done().stdout
    assert "first_paper" in shown
    assert "What it is." in shown
    listed = json.loads(done("--json").stdout)["experiments"]
    assert listed == [{"name": "first_paper", "about": "What it is.", "quick_minutes": None, "full_minutes": None}]


def test_the_list_says_how_long_they_take(tree, monkeypatch):
    monkeypatch.setitem(reproduction.MINUTES, "first_paper", (3.4, 200.0))
    write_paper(tree, "second")
    shown = done().stdout
    assert re.search(r"first_paper .* 3 min │ +3 h", shown)
    assert re.search(r"second .* \? │ +\? ", shown)


def test_every_experiment_of_the_repository_says_how_long_it_takes():
    from experiments.runner import discover

    assert set(reproduction.MINUTES) == set(discover())
    assert sum(quick for quick, _ in reproduction.MINUTES.values()) < 15


@pytest.mark.parametrize("width", [80, 140])
def test_one_table_has_claim_paper_ours_spread_and_whether_it_held(tree, width):
    result = done("first-paper", "--quick", width=width)
    shown = result.stdout
    assert all(len(line) <= width for line in shown.splitlines() if str(tree) not in line)
    assert row(shown, "a reaches two") == ["a reaches two", "2.5", "1.5", "0.71", "not held"]
    assert row(shown, "why: too few rows")[0] == "why: too few rows (from full runs)"
    assert row(shown, "a reaches one") == ["a reaches one", "1", "1.5", "0.71", "held"]
    assert "no reason known yet; -7.5" in shown
    assert row(shown, "a beside b") == ["a beside b", "", "1.5", "0.71", "reported"]
    assert "of the full mode" not in shown
    assert "1 claim was not run" in shown
    assert f"{tree}/experiments/results" in shown
    assert (tree / "experiments" / "results" / "first_paper-quick.md").is_file()
    assert "[2/2] a, seed 1 ... done" in result.stderr
    assert "run with the library in" in result.stderr
    shown = done("first_paper", "--quick", "--not-run").stdout
    assert row(shown, "of the full mode")[1::3] == ["85 %", "not run"]


def test_runs_are_kept_and_options_reach_the_runner(tree, tmp_path):
    results = tmp_path / "kept"
    options = ("first_paper", "--results", results)
    assert "[1/2]" in done(*options).stderr
    assert "[1/" not in done(*options).stderr
    assert "[1/1] a, seed 2" in done(*options, "--seeds", 3).stderr
    assert "[1/3]" in done(*options, "--seeds", 3, "--fresh").stderr
    assert {path.name for path in results.iterdir()} == {f"first_paper-full.{end}" for end in ("jsonl", "md", "json")}
    result = done(*options, "--time-limit", 0, "--fresh")
    assert "note: first_paper: time limit: 2 runs remain; the same command continues" in result.stderr
    assert mercer(*options, "--only", "zzz").stderr.count("only='zzz' matches no case") == 1


def test_quick_without_a_name_and_all_run_every_paper(tree):
    write_paper(tree, "second", case="b", work='return {"score": 0.25, "other": 1}')
    shown = done("--quick").stdout
    assert shown.index("The first_paper paper") < shown.index("a reaches two") < shown.index("The second paper")
    # No claim of the second can be run: its measures are shown.
    assert row(shown, "b (score)") == ["b (score)", "", "0.25", "0", "measured"]
    assert "6 claims were not run" in shown
    assert "The second paper" in done("all").stdout
    shown = done("all", "--only", "b", "--fresh").stdout
    assert "The second paper" in shown
    assert "The first_paper paper" not in shown
    assert mercer("all", "--only", "zzz").exit_code == 1


def test_the_time_limit_is_for_all_papers_together(tree):
    ticks = iter(range(0, 1000, 10))
    options = reproduction.Options(quick=True, time_limit=15.0)
    write_paper(tree, "second")
    write_paper(tree, "third")
    limits = []

    def keep(name, results, options, root):
        limits.append(options.time_limit)
        return name

    original, reproduction.reproduce = reproduction.reproduce, keep
    try:
        names = reproduction.chosen("all", tree / "experiments")
        list(reproduction.reproduce_each(names, tree, options, tree / "experiments", lambda: next(ticks)))
    finally:
        reproduction.reproduce = original
    assert limits == [5.0, 0.0, 0.0]


def test_json_is_one_document_with_all_claims(tree):
    write_paper(tree, "second", case="b", work='return {"score": float("nan")}')
    result = done("all", "--json")
    document = json.loads(result.stdout, parse_constant=lambda text: pytest.fail(text))
    assert document["mode"] == "full"
    assert document["errors"] == {}
    first, second = document["papers"]
    assert [claim["status"] for claim in first["claims"]] == ["not held", "held", "not held", "reported", "not run"]
    claim = first["claims"][0]
    assert (claim["text"], claim["paper"], claim["mean"], claim["reason"]) == (
        "a reaches two",
        2.5,
        1.5,
        "too few rows",
    )
    assert claim["spread"] == pytest.approx(0.5**0.5)
    assert second["measured"][0]["text"] == "b (score)"
    assert second["measured"][0]["mean"] is None
    assert first["report"].endswith("first_paper-full.md")


def test_measures_are_counted_beyond_the_first_few(tree, monkeypatch):
    monkeypatch.setattr(reproduction, "MOST_MEASURED", 1)
    write_paper(tree, "second", case="b")
    text = (tree / "experiments" / "second" / "experiment.py").read_text()
    many = text.replace('[Case("b"', '[Case("c", work), Case("words", lambda s, i: {"text": "x"}), Case("b"')
    (tree / "experiments" / "second" / "experiment.py").write_text(many)
    shown = done("second", "--quick").stdout
    assert "c (score)" in shown
    assert "b (score)" not in shown
    assert "and 1 more in second-quick.md" in shown


def test_a_failed_run_is_exit_code_1_and_the_others_are_told(tree):
    write_paper(tree, "second", work="raise ValueError('bad')")
    result = mercer("--quick")
    assert result.exit_code == 1
    assert "The first_paper paper" in result.stdout
    assert "note: second: 2 runs failed; the same command tries them again" in result.stderr
    assert "ValueError: bad" in result.stderr


@pytest.mark.parametrize("work", ["raise ConnectionError('no data')", "import not_installed_here"])
def test_what_is_missing_is_told_without_a_traceback_and_others_go_on(tree, work):
    write_paper(tree, "second", case="b", work=f"if seed:\n        {work}\n    return {{'score': 1}}")
    result = done("--quick")
    assert "Traceback" not in result.stderr
    assert "note: second: 1 run could not be made: " in result.stderr
    assert row(result.stdout, "b (score)")[2] == "1"
    write_paper(tree, "third", work=work)
    result = mercer("third")
    assert result.exit_code == 1
    assert "nothing was measured" in result.stdout


def test_papers_that_cannot_be_loaded_do_not_stop_the_others(tree):
    write_paper(tree, "a_second")
    (tree / "experiments" / "a_second" / "experiment.py").write_text("import not_installed_here")
    result = mercer("all", "--json")
    assert result.exit_code == 1
    document = json.loads(result.stdout)
    assert [paper["experiment"] for paper in document["papers"]] == ["first_paper"]
    assert "not_installed_here" in document["errors"]["a_second"]
    result = mercer("a_second")
    assert result.exit_code == 1
    assert result.stderr.endswith("error: No module named 'not_installed_here'\n")


def test_wrong_calls(tree):
    result = mercer("nothing")
    assert result.exit_code == 1
    assert "unknown experiment 'nothing'; the experiments are ['first_paper']" in result.stderr
    for option in (["--fresh"], ["--only", "a"], ["--seeds", 2], ["--time-limit", 1]):
        result = mercer(*option)
        assert result.exit_code == 1
        assert "which experiment?" in result.stderr
    assert mercer("first_paper", "--seeds", 0).exit_code == 2
    with pytest.raises(UsageError):
        reproduction.chosen("nothing")


def test_stopping_says_that_it_goes_on(tree):
    write_paper(tree, "second", work="raise KeyboardInterrupt")
    result = mercer("second")
    assert result.exit_code == 130
    assert "stopped; the same command continues from here" in result.stderr


def test_the_checkout_is_that_of_the_folder_or_of_the_package(tree, tmp_path, monkeypatch):
    assert checkout.find_checkout() == tree
    assert checkout.enter_checkout() == tree
    assert sys.path[0] == str(tree)
    assert checkout.experiment_names() == ["first_paper"]
    monkeypatch.chdir(tmp_path)
    package = checkout.find_checkout()
    assert (package / "src" / "mercer" / "app" / "cli" / "checkout.py").is_file()
    monkeypatch.setattr(checkout.mercer, "__file__", str(tmp_path / "site" / "lib" / "mercer" / "__init__.py"))
    assert checkout.find_checkout() is None
    assert checkout.experiment_names() == []
    result = mercer()
    assert result.exit_code == 1
    assert result.stderr.startswith("error: the experiments are part of Mercer's repository")
    assert result.stderr.count("\n") == 1
    (tmp_path / "experiments").mkdir()
    (tmp_path / "experiments" / "runner.py").touch()
    assert checkout.find_checkout() is None
