"""The experiment runner: nothing is lost to a kill, nothing stale is shown, and verdicts are honest."""

import io
import json
import math
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from experiments import Case, Claim, Experiment, MissingResult, Results
from experiments.__main__ import main
from experiments.claims import judge
from experiments.kept import records_of
from experiments.report import (
    as_document,
    as_markdown,
    make_report,
    print_report,
    strict_json,
    write_atomically,
    write_report,
)
from experiments.runner import UsageError, discover, load, open_journal, run

REPO = Path(__file__).resolve().parents[2]


class Recorder:
    """A case's run function that remembers its calls and fails for the seeds it is told to."""

    def __init__(self, *bad_seeds):
        self.calls, self.bad_seeds = [], set(bad_seeds)

    def __call__(self, settings, seed):
        self.calls.append((settings.get("size"), seed))
        if seed in self.bad_seeds:
            raise ValueError(f"seed {seed} is bad")
        return {"score": 10 * settings.get("size", 0) + seed}


def make(work, size=1, seeds=3, claims=(), name="toy"):
    return Experiment(name, "A toy", lambda quick: [Case("a", work, {"size": size}, seeds)], claims)


def quietly(experiment, results, **options):
    return run(experiment, results, progress=io.StringIO(), **options)


def write_experiment(root, name, body):
    (root / name).mkdir(parents=True)
    (root / name / "experiment.py").write_text(f'"""First line of {name}.\n\nMore."""\n{body}')


TOY = """
from experiments import Case, Claim, Experiment
from .work import work
claim = Claim("a is one", 1.0, lambda r: r.values("a", "score"), lambda r: r.mean("a", "score") == 1)
EXPERIMENT = Experiment("toy", "A toy paper", lambda quick: [Case("a", work, {"quick": quick}, 3)], [claim])
"""


def test_a_second_run_does_nothing_and_more_seeds_add_only_themselves(tmp_path):
    work = Recorder()
    quietly(make(work), tmp_path)
    quietly(make(work), tmp_path)
    assert work.calls == [(1, 0), (1, 1), (1, 2)]
    outcome = quietly(make(work), tmp_path, seeds=4)
    assert work.calls[3:] == [(1, 3)]
    assert outcome.results.values("a", "score") == [10, 11, 12, 13]
    assert quietly(make(work), tmp_path, seeds=2).results.values("a", "score") == [10, 11]


def test_lines_record_seconds_versions_and_settings_and_modes_do_not_mix(tmp_path):
    work = Recorder()
    quietly(make(work, seeds=1), tmp_path, quick=True)
    (line,) = (tmp_path / "toy-quick.jsonl").read_text().splitlines()
    record = json.loads(line)
    assert record["settings"] == {"size": 1}
    assert record["seconds"] >= 0
    assert "numpy" in record["versions"]
    quietly(make(work, seeds=1), tmp_path)
    assert len(work.calls) == 2


@pytest.mark.parametrize("kept", [1, 20, -2, -1])
def test_a_torn_last_line_is_dropped_and_redone(tmp_path, kept):
    work = Recorder()
    quietly(make(work), tmp_path)
    path = tmp_path / "toy-full.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:2]) + lines[2][:kept])
    outcome = quietly(make(work), tmp_path)
    assert work.calls[3:] == [(1, 2)]
    assert outcome.results.values("a", "score") == [10, 11, 12]
    assert [json.loads(line)["seed"] for line in path.read_text().splitlines()] == [0, 1, 2]


def test_a_damaged_line_in_the_middle_costs_only_its_own_run(tmp_path):
    work = Recorder()
    quietly(make(work), tmp_path)
    path = tmp_path / "toy-full.jsonl"
    lines = path.read_bytes().splitlines()
    path.write_bytes(b"\n".join([lines[0], b"\0" * 40, lines[2], b""]))
    quietly(make(work), tmp_path)
    assert work.calls[3:] == [(1, 1)]


def test_a_run_killed_in_the_middle_of_a_case_resumes_there(tmp_path):
    write_experiment(tmp_path, "toy", TOY)
    (tmp_path / "toy" / "work.py").write_text(
        "import pathlib, time\n"
        "here = pathlib.Path(__file__).parent\n"
        "def work(settings, seed):\n"
        "    with open(here / 'calls', 'a') as file:\n"
        "        file.write(str(seed))\n"
        "    if seed == 1 and not (here / 'awake').exists():\n"
        "        (here / 'sleeping').touch()\n"
        "        time.sleep(60)\n"
        "    return {'score': 1}\n"
    )
    code = (
        "import sys; from pathlib import Path; from experiments.__main__ import main; main(['toy'], Path(sys.argv[1]))"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], cwd=REPO, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        deadline = time.monotonic() + 30
        while not (tmp_path / "toy" / "sleeping").exists():
            assert child.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.02)
    finally:
        child.kill()
        assert child.wait() == -signal.SIGKILL
    (tmp_path / "toy" / "awake").touch()
    assert main(["toy"], tmp_path) == 0
    assert (tmp_path / "toy" / "calls").read_text() == "0112"
    assert json.loads((tmp_path / "results" / "toy-full.json").read_text())["claims"][0]["status"] == "held"


def test_changed_settings_make_old_results_invisible(tmp_path):
    work = Recorder()
    quietly(make(work, size=1), tmp_path)
    outcome = quietly(make(work, size=2), tmp_path, time_limit=0)
    assert outcome.remaining == 3
    with pytest.raises(MissingResult, match="no result for seed 0"):
        outcome.results.values("a", "score")
    assert quietly(make(work, size=2), tmp_path).results.values("a", "score") == [20, 21, 22]
    assert len(work.calls) == 6
    assert quietly(make(work, size=1), tmp_path).results.values("a", "score") == [10, 11, 12]
    assert len(work.calls) == 6


def test_a_run_cannot_change_its_settings(tmp_path):
    def work(settings, seed):
        settings["list"].append(seed)
        return {"length": len(settings["list"])}

    experiment = Experiment("toy", "", lambda quick: [Case("a", work, {"list": []}, 2)])
    assert quietly(experiment, tmp_path).results.values("a", "length") == [1, 1]


def test_errors_are_recorded_do_not_stop_the_others_and_are_tried_again(tmp_path):
    work = Recorder(1)
    claim = Claim("scores", 11, lambda r: r.values("a", "score"), lambda r: True)
    experiment = make(work, claims=[claim])
    outcome = quietly(experiment, tmp_path)
    assert outcome.failed == 1
    assert work.calls == [(1, 0), (1, 1), (1, 2)]
    report = make_report(experiment, outcome, quick=False)
    assert report.verdicts[0].status == "not run"
    assert "ValueError: seed 1 is bad" in report.verdicts[0].reason
    assert "seed 1 failed: ValueError" in as_markdown(report)
    work.bad_seeds.clear()
    outcome = quietly(experiment, tmp_path)
    assert outcome.failed == 0
    assert work.calls[3:] == [(1, 1)]
    assert make_report(experiment, outcome, quick=False).verdicts[0].status == "held"


def test_exit_codes_tell_errors_and_wrong_calls_from_claims_that_do_not_hold(tmp_path, capsys):
    write_experiment(tmp_path, "toy", TOY)
    work = "def work(settings, seed):\n    return {'score': 1 / settings['quick']}\n"
    (tmp_path / "toy" / "work.py").write_text(work)
    assert main(["toy", "--quick"], tmp_path) == 0
    assert main(["toy", "--seeds", "1"], tmp_path) == 1
    assert "ZeroDivisionError" in capsys.readouterr().err
    assert main(["nothing"], tmp_path) == 2
    assert "unknown experiment 'nothing'; the experiments are ['toy']" in capsys.readouterr().err
    assert main(["toy", "--only", "zzz"], tmp_path) == 2
    with pytest.raises(SystemExit):
        main(["toy", "--seeds", "0"], tmp_path)


def test_measures_that_are_not_numbers_are_errors_and_scalars_of_numpy_are_numbers(tmp_path):
    np = pytest.importorskip("numpy")
    values = {"good": {"x": np.float32(0.5), "ok": np.bool_(True), "note": "text"}, "bad": {"x": [1.0, 2.0]}}
    cases = [Case(name, lambda settings, seed, given=given: given) for name, given in values.items()]
    experiment = Experiment("toy", "", lambda quick: cases)
    outcome = quietly(experiment, tmp_path)
    assert outcome.results.values("good", "x") == [0.5]
    assert outcome.results.values("good", "ok") == [1.0]
    with pytest.raises(MissingResult, match="'x' must be a number or text, got list"):
        outcome.results.values("bad", "x")
    with pytest.raises(TypeError, match="'note'"):
        outcome.results.values("good", "note")


def test_fresh_starts_over_and_with_only_forgets_only_those_cases(tmp_path):
    a, b = Recorder(), Recorder()
    experiment = Experiment("toy", "", lambda quick: [Case("a", a), Case("b", b)])
    quietly(experiment, tmp_path)
    quietly(experiment, tmp_path, only="b", fresh=True, time_limit=0)
    outcome = quietly(experiment, tmp_path, time_limit=0)
    assert outcome.remaining == 1
    assert outcome.results.values("a", "score") == [0]
    quietly(experiment, tmp_path, only="b")
    assert (len(a.calls), len(b.calls)) == (1, 2)
    quietly(experiment, tmp_path, fresh=True)
    assert (len(a.calls), len(b.calls)) == (2, 3)
    assert len((tmp_path / "toy-full.jsonl").read_text().splitlines()) == 2


def test_the_time_limit_stops_new_runs_and_counts_the_rest(tmp_path):
    ticks = iter(range(1000))
    outcome = quietly(make(Recorder(), seeds=9), tmp_path, time_limit=7, clock=lambda: next(ticks))
    assert 0 < outcome.remaining < 9
    assert outcome.remaining + len(outcome.results.records) == 9


def test_two_runs_on_one_journal_are_refused(tmp_path):
    pytest.importorskip("fcntl")
    with open_journal(tmp_path / "toy-full.jsonl"), pytest.raises(UsageError, match="another run"):
        quietly(make(Recorder()), tmp_path)


def results_of(**cases):
    records = {
        (name, seed): {"measures": {"x": value}}
        for name, values in cases.items()
        for seed, value in reversed(list(enumerate(values)))
    }
    return Results({name: len(values) for name, values in cases.items()}, records)


def test_values_come_in_seed_order_so_that_cases_pair():
    results = results_of(ours=[1.0, 2.0, 3.0], theirs=[0.5, 1.5, 2.5])
    pairs = zip(results.values("ours", "x"), results.values("theirs", "x"), strict=True)
    assert [a - b for a, b in pairs] == [0.5, 0.5, 0.5]
    assert results.mean("ours", "x") == 2


def test_verdicts():
    results = results_of(a=[1.0, 2.0, 3.0], b=[float("inf"), -float("inf")])

    def verdict(case="a", measure="x", **options):
        return judge(Claim("text", 2.1, lambda r: r.values(case, measure), **options), results)

    held = verdict(holds=lambda r: r.mean("a", "x") > 1)
    assert (held.status, held.mean, held.spread, held.reason) == ("held", 2, 1, "")
    lost = verdict(holds=lambda r: r.mean("a", "x") > 5, why="their data are larger")
    assert (lost.status, lost.reason) == ("not held", "their data are larger")
    assert verdict(holds=lambda r: False).reason
    assert verdict().status == "reported"
    assert verdict("c").status == "not run"
    assert "'c'" in verdict("c").reason
    assert verdict(measure="y").status == "not run"
    assert "'y'" in verdict(measure="y").reason
    assert verdict(holds=lambda r: r.mean("c", "x") > 1).status == "not run"
    assert verdict(holds=lambda r: 1 / 0).status == "error"
    assert judge(Claim("none", None, lambda r: []), results).status == "error"
    assert verdict("b").mean != verdict("b").mean  # nan, and no exception


def test_reports_are_written_as_markdown_and_strict_json(tmp_path):
    claims = [
        Claim("a | b", "about 1", lambda r: r.values("a", "score"), lambda r: True),
        Claim("nan", None, lambda r: [float("nan")]),
    ]
    experiment = make(Recorder(), claims=claims)
    report = make_report(experiment, quietly(experiment, tmp_path), quick=False)
    markdown, data = write_report(report, tmp_path)
    assert "| a \\| b | about 1 | 11 ± 1 (n = 3) | held |  |" in markdown.read_text(encoding="utf-8")

    def refuse(constant):
        raise AssertionError(constant)

    content = json.loads(data.read_text(encoding="utf-8"), parse_constant=refuse)
    assert content["claims"][0]["mean"] == 11
    assert content["claims"][1]["mean"] == "nan"
    assert content["cases"][0]["measures"] == {"score": [10, 11, 12]}


def test_a_failed_write_leaves_the_old_file_and_no_litter(tmp_path, monkeypatch):
    path = tmp_path / "report.md"
    write_atomically(path, "old")

    def fail(source, target):
        assert Path(source).read_text() == "new"
        assert path.read_text() == "old"
        raise OSError("disk gone")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk gone"):
        write_atomically(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("rich", [True, False])
def test_the_terminal_table_with_and_without_rich(tmp_path, capsys, monkeypatch, rich):
    if rich:
        pytest.importorskip("rich")
    else:
        monkeypatch.setitem(sys.modules, "rich.console", None)
    claim = Claim("[bold] stays", 1, lambda r: r.values("a", "score"), lambda r: True)
    experiment = make(Recorder(), claims=[claim])
    print_report(make_report(experiment, quietly(experiment, tmp_path), quick=False))
    shown = capsys.readouterr().out
    assert "[bold]" in shown
    assert "held" in shown
    assert "A toy" in shown


def test_listing_does_not_import(tmp_path, capsys):
    write_experiment(tmp_path, "costly", "raise RuntimeError('imported')")
    write_experiment(tmp_path, "broken", "def")
    (tmp_path / "results").mkdir()
    assert main([], tmp_path) == 0
    shown = capsys.readouterr().out
    assert "First line of costly." in shown
    assert "More" not in shown
    assert list(discover(tmp_path)) == ["broken", "costly"]
    assert "cannot be read" in discover(tmp_path)["broken"]
    with pytest.raises(RuntimeError, match="imported"):
        load("costly", tmp_path)


def test_mistakes_in_an_experiment_are_named(tmp_path):
    write_experiment(tmp_path, "nameless", "EXPERIMENT = None")
    with pytest.raises(ValueError, match="must define EXPERIMENT with name 'nameless'"):
        load("nameless", tmp_path)
    with pytest.raises(ValueError, match="seeds of case 'a' must be at least 1, got 0"):
        Case("a", Recorder(), {}, 0)
    with pytest.raises(TypeError, match="settings of case 'a' must be JSON"):
        quietly(Experiment("toy", "", lambda quick: [Case("a", Recorder(), {"f": len})]), tmp_path)
    with pytest.raises(ValueError, match="must differ"):
        quietly(Experiment("toy", "", lambda quick: [Case("a", Recorder())] * 2), tmp_path)


@pytest.mark.parametrize("error", [ConnectionError("no data"), ModuleNotFoundError("no library")])
def test_what_is_missing_is_no_failure_and_is_tried_again(tmp_path, error):
    def work(settings, seed):
        if seed == 1:
            raise error
        return {"score": seed}

    progress = io.StringIO()
    outcome = run(make(work), tmp_path, progress=progress)
    assert (outcome.failed, outcome.missing) == (0, {str(error): 1})
    assert "Traceback" not in progress.getvalue()
    assert f"{type(error).__name__}: {error}" in progress.getvalue()
    assert json.loads((tmp_path / "toy-full.jsonl").read_text().splitlines()[1])["missing"] == str(error)
    assert quietly(make(Recorder()), tmp_path).missing == {}


def test_cases_whose_library_is_not_here_are_left_out_unless_they_are_done(tmp_path):
    work = Recorder()
    made = [Case("free", work, {"a": 1}, 1), Case("bound", work, {"b": 1}, 2, needs="not_installed_here")]
    toy = Experiment("toy", "", lambda quick: made, [Claim("bound runs", None, lambda r: r.values("bound", "x"))])
    outcome = quietly(toy, tmp_path, time_limit=0.0)
    # What cannot be run is not what remains to be run.
    assert outcome.remaining == 1
    assert outcome.missing == {"not_installed_here is not installed": 2}
    outcome = quietly(toy, tmp_path)
    assert ([case.name for case in outcome.cases], outcome.remaining, outcome.failed) == (["free"], 0, 0)
    assert judge(toy.claims[0], outcome.results).status == "not run"
    key = {"key": made[1].key, "settings": made[1].settings}
    known = [{"case": "bound", **key, "seed": seed, "measures": {"x": 1.0}, "seconds": 1.0} for seed in range(2)]
    outcome = quietly(toy, tmp_path, known=known)
    assert ([case.name for case in outcome.cases], outcome.missing) == (["free", "bound"], {})
    # One that is here is no reason to leave a case out.
    here = Experiment("here", "", lambda quick: [Case("bound", work, {}, 1, needs="json")])
    assert quietly(here, tmp_path).cases


def test_all_papers_in_turn(tmp_path, capsys):
    for name in ("one", "two"):
        write_experiment(tmp_path, name, TOY.replace('"toy"', f'"{name}"'))
        (tmp_path / name / "work.py").write_text("def work(settings, seed):\n    return {'score': 1}\n")
    write_experiment(tmp_path, "broken", "import not_installed_here")
    assert main(["all"], tmp_path) == 1
    shown = capsys.readouterr()
    assert shown.out.count("A toy paper") == 2
    assert "error: broken: No module named 'not_installed_here'" in shown.err
    assert shown.err.count("written: ") == 2


def test_a_missing_case_names_those_that_are_near_and_a_gap_is_told():
    results = results_of(ours=[1.0], theirs=[2.0])
    with pytest.raises(MissingResult, match="^no case 'our' in this mode; there is ours$"):
        results.values("our", "x")
    with pytest.raises(MissingResult, match="^no case 'zzz' in this mode$"):
        results.values("zzz", "x")
    reasons = [
        judge(Claim("text", paper, lambda r: r.values("ours", "x"), lambda r: False), results).reason
        for paper in (1.25, "more", None)
    ]
    assert reasons[0] == "no reason known yet; -0.25 from the paper's number"
    assert reasons[1] == reasons[2] == "no reason known yet"


def test_runs_say_where_they_come_from_and_a_report_gives_its_lines_back(tmp_path):
    work = Recorder()
    outcome = quietly(make(work), tmp_path)
    line = json.loads((tmp_path / "toy-full.jsonl").read_text().splitlines()[0])
    assert re.fullmatch(r"[0-9a-f]{10}\+?|", line["commit"])
    assert "cores" in line["machine"]
    report = as_document(make_report(make(work), outcome, quick=False))
    assert report["cases"][0]["seeds done"] == [0, 1, 2]
    assert (report["cases"][0]["commit"], report["cases"][0]["machine"]) == (line["commit"], line["machine"])
    known = records_of(json.loads(strict_json(report)))
    assert [record["measures"] for record in known] == [{"score": 10.0}, {"score": 11.0}, {"score": 12.0}]
    again = quietly(make(work), tmp_path / "elsewhere", known=known)
    assert len(work.calls) == 3
    assert again.results.mean("a", "score") == 11
    quietly(make(work, size=2), tmp_path / "elsewhere", known=known)  # other settings: nothing is known of them
    assert len(work.calls) == 6


def test_reports_that_did_not_name_their_seeds_are_known_where_all_were_done():
    case = {"case": "a", "settings": {}, "seeds": 2, "done": 2, "seconds": 1.0, "measures": {"x": [1.0, "nan"]}}
    report = {"cases": [case, {**case, "seeds": 3}], "versions": {"mercer": ["0.1"]}}
    found = records_of(report)
    assert [record["seed"] for record in found] == [0, 1]
    assert math.isnan(found[1]["measures"]["x"])
    assert records_of({"cases": [{**case, "seeds done": [1, 2]}], "versions": {}})[0]["seed"] == 1
