"""The benchmark harness: interleaved times, honest memory, ratios judged, and no number without agreement."""

import ast
import json
import re

import pytest

from benchmarks import Benchmark, RatioClaim, bounds, first_model, harness, many_rows, report_page
from benchmarks.__main__ import main
from benchmarks.harness import CheckFailed, Measured, Memory, discover, judge, measure_memory, measure_time


class FakeClock:
    """A clock that moves only when a contestant says that it worked."""

    def __init__(self):
        self.now, self.order = 0.0, []

    def __call__(self):
        return self.now

    def contestant(self, name, *seconds):
        """Takes `seconds` in turn, the last of them for ever after; the first is the warm-up."""
        left = list(seconds)

        def work(data):
            self.order.append(name)
            self.now += left.pop(0) if len(left) > 1 else left[0]
            return data

        return work


TOY = '''"""A toy: first line.

More."""
import time
from benchmarks import Benchmark, RatioClaim

def setup(quick):
    return 1 if quick else 2

def check(outputs):
    if len(set(outputs.values())) > 1:
        raise AssertionError(f"outputs differ: {{outputs}}")

def slow(data):
    time.sleep(0.05)
    return {slow_answer}

def fast(data):
    return data

def absent(data):
    import a_package_that_is_not_installed

BENCHMARK = Benchmark("toy", setup, {{"slow": slow, "fast": fast, "absent": absent}}, check=check, claims=[
    RatioClaim("sleeping is slower", slow="slow", fast="fast", at_least=4),
    RatioClaim("absent is slower", slow="absent", fast="fast", at_least=4)])
'''

ALLOCATE = '''"""Allocations of 200 MB, kept, passing, or none, behind a larger one of the setup."""
from benchmarks import Benchmark

def setup(quick):
    passing = b"x" * (10 if quick else 300_000_000)      # a higher peak before must not hide the call's own
    return 1 if quick else 200

def keep(data):
    return b"x" * (data * 1_000_000)

def let_go(data):
    return len(b"x" * (data * 1_000_000))

def nothing(data):
    return data

BENCHMARK = Benchmark("allocate", setup, {"keep": keep, "let go": let_go, "nothing": nothing})
'''


def test_rounds_are_interleaved_after_a_warm_up_that_is_not_counted():
    clock = FakeClock()
    contestants = {"a": clock.contestant("a", 100, 4, 6), "b": clock.contestant("b", 100, 1)}
    measured = measure_time(Benchmark("toy", lambda quick: 0, contestants), 0, repeats=3, clock=clock)
    assert clock.order == ["a", "b"] * 4
    assert measured.seconds == {"a": [4, 6, 6], "b": [1, 1, 1]}


@pytest.mark.parametrize(
    ("at_least", "reach", "status"),
    [(4, None, "held"), (6, None, "held"), (6.1, None, "not held"), (4, 6, "reach"), (4, 7, "held")],
)
def test_claims_on_seconds_go_by_medians(at_least, reach, status):
    measured = Measured({"slow": [6, 1, 7], "fast": [1, 1, 90]})
    verdict = judge(RatioClaim("", "slow", "fast", at_least, reach=reach), measured)
    assert (verdict.ratio, verdict.status) == (6, status)


def test_claims_on_memory_need_exact_numbers_and_do_not_divide_by_nearly_nothing():
    memory = {
        "big": Memory(200e6, "VmHWM"),
        "none": Memory(0.0, "VmHWM"),
        "bound": Memory(50e6, "ru_maxrss"),
        "unknown": Memory(None, "not measured"),
    }
    measured = Measured({}, memory)

    def ratio(slow, fast):
        return judge(RatioClaim("", slow, fast, 2, of="memory"), measured).ratio

    assert ratio("big", "none") == 200
    assert ratio("none", "none") == 1
    assert ratio("big", "bound") is None
    assert judge(RatioClaim("", "unknown", "big", 2, of="memory"), measured).status == "not measured"


def test_contestants_that_disagree_are_an_error():
    def check(outputs):
        assert outputs["a"] == outputs["b"], "a is not b"

    benchmark = Benchmark("toy", lambda quick: 0, {"a": lambda data: 1, "b": lambda data: 2}, check=check)
    with pytest.raises(CheckFailed, match="contestants of 'toy' do not agree: a is not b"):
        measure_time(benchmark, 0, repeats=1)


def test_a_missing_peer_is_left_out_but_a_missing_module_of_ours_is_an_error():
    def peer(data):
        raise ModuleNotFoundError("No module named 'peer'", name="peer")

    def ours(data):
        raise ModuleNotFoundError("No module named 'mercer.gone'", name="mercer.gone")

    contestants = {"a": lambda data: 1, "peer": peer}
    measured = measure_time(Benchmark("toy", lambda quick: 0, contestants), 0, repeats=1)
    assert list(measured.seconds) == ["a"]
    assert measured.missing == {"peer": "No module named 'peer'"}
    with pytest.raises(ModuleNotFoundError, match="gone"):
        measure_time(Benchmark("toy", lambda quick: 0, {"ours": ours}), 0, repeats=1)


def test_memory_of_an_allocation_is_seen_within_a_fifth(tmp_path):
    (tmp_path / "allocate.py").write_text(ALLOCATE)
    names = "keep", "let go", "nothing"
    found = {name: measure_memory("allocate", name, False, tmp_path) for name in names}
    if not found["keep"].exact:
        pytest.skip(f"memory is found by {found['keep'].method} here")
    assert found["keep"].peak == pytest.approx(200e6, rel=0.2)
    assert found["let go"].peak == pytest.approx(200e6, rel=0.2)
    assert found["nothing"].peak < 10e6


def test_without_a_reset_the_rise_is_a_bound_and_without_a_rise_nothing_is_known(monkeypatch):
    marks = iter([100, 350, 350, 350])
    monkeypatch.setattr(harness, "reset_high_water_mark", lambda: False)
    monkeypatch.setattr(harness, "resource", object())
    monkeypatch.setattr(harness, "highest_ever", lambda: next(marks))
    assert harness.peak_memory(lambda: None) == Memory(250.0, "ru_maxrss")
    assert harness.peak_memory(lambda: None) == Memory(None, "not measured")
    monkeypatch.setattr(harness, "resource", None)
    assert harness.peak_memory(lambda: None) == Memory(None, "not measured")


@pytest.mark.parametrize(("load", "busy"), [(0.1, False), (3.0, True), (None, False)])
def test_the_command_measures_writes_json_and_warns_when_busy(tmp_path, capsys, monkeypatch, load, busy):
    (tmp_path / "toy.py").write_text(TOY.format(slow_answer="data"))
    monkeypatch.setattr("benchmarks.__main__.load_average", lambda: load)
    monkeypatch.setattr("benchmarks.__main__.measure_memory", lambda *_: Memory(5e6, "ru_maxrss"))
    assert main(["toy", "--repeats", "3", "--quick", "--out", str(tmp_path / "out")], tmp_path) == 0
    shown = capsys.readouterr()
    assert ("machine is busy" in shown.err) == busy
    assert "≥ 5.0" in shown.out
    text = (tmp_path / "out" / "toy-quick.json").read_text()
    content = json.loads(text)
    assert content["machine_was_busy"] == busy
    assert content["load_before"] == load
    assert [claim["status"] for claim in content["claims"]] == ["held", "not measured"]
    slow, fast, absent = content["contestants"]
    assert slow["median"] >= slow["min"] >= 0.05 > fast["min"]
    assert len(slow["seconds"]) == 3
    assert "a_package_that_is_not_installed" in absent["missing"]
    assert content["machine"]["cores"] >= 1
    assert "numpy" in content["machine"]["versions"]
    assert str(tmp_path) not in text


def test_the_command_refuses_disagreement_and_unknown_names(tmp_path, capsys):
    (tmp_path / "toy.py").write_text(TOY.format(slow_answer="data + 1"))
    assert main(["toy", "--repeats", "1"], tmp_path) == 1
    assert "do not agree" in capsys.readouterr().err
    assert not (tmp_path / "results").exists()
    assert main(["toys"], tmp_path) == 2
    assert "unknown benchmark 'toys'; the benchmarks are ['toy']" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["toy", "--repeats", "0"], tmp_path)


def test_listing_does_not_import_and_skips_helpers(tmp_path, capsys):
    (tmp_path / "toy.py").write_text('"""The line.\n\nMore."""\nBENCHMARK = 1 / 0\n')
    (tmp_path / "helper.py").write_text('"""Helps."""\n')
    assert main([], tmp_path) == 0
    assert capsys.readouterr().out == "toy\n    The line.\n"
    assert "harness" not in discover()


def test_mistakes_in_a_benchmark_are_named():
    with pytest.raises(ValueError, match="of must be one of"):
        RatioClaim("", "a", "b", 2, of="joules")
    with pytest.raises(ValueError, match="reach must be greater than at_least = 4, got 3"):
        RatioClaim("", "a", "b", 4, reach=3)
    with pytest.raises(ValueError, match="names 'b'; the contestants are \\['a'\\]"):
        Benchmark("toy", lambda quick: 0, {"a": len}, [RatioClaim("text", "a", "b", 2)])


def test_many_rows_go_by_the_largest_size_and_the_one_before():
    def entry(model, n, seconds, peak, d=many_rows.N_COLUMNS):
        return {"model": model, "rows": n, "columns": d, "seconds": seconds, "peak_gb": peak}

    fits = [entry("RFM", 10, 1.0, 1.0), entry("RFM", 1000, 1000.0, 13.0), entry("RFM", 100, 10.0, 2.0)]
    fits += [entry("embedding", 100, 1.0, 1.0), entry("embedding", 1000, 10.0, 1.0)]
    fits.append(entry("embedding", 60, 1.0, 1.6, d=784))
    found = many_rows.judge(fits)
    assert [claim["status"] for claim in found] == ["not held", "not held", "held", "held", "not held"]
    assert [round(claim["exponent"], 6) for claim in found if "exponent" in claim] == [2, 1]
    assert found[-1]["at_most"] == 1.5


def test_pages_are_judged_by_seconds_and_by_size():
    pages = [
        {"kind": "prediction", "rows": 10, "report_seconds": 29.0, "megabytes": 5.1},
        {"kind": "clustering", "rows": 10, "report_seconds": 31.0, "megabytes": 0.4},
    ]
    assert [claim["status"] for claim in report_page.judge(pages)] == ["held", "not held", "not held", "held"]


def test_flats_have_numbers_categories_dates_and_holes():
    flats = report_page.rented_flats(500)
    assert flats["built"].dtype.kind == "M"
    assert flats["town"].nunique() == 4
    assert 0 < flats["rooms"].isna().sum() < 60
    assert flats["rent"].corr(flats["size"]) > 0.4


def test_what_was_bounded_is_printed_and_kept(tmp_path, capsys):
    claims = [bounds.verdict("short", 1.0, 2.0), {**bounds.verdict("long", 3.0, 2.0), "exponent": 1.5}]
    bounds.print_claims(claims)
    shown = capsys.readouterr().out
    assert "not held" in shown
    assert "1.50" in shown
    bounds.keep(tmp_path, "toy-quick", 0.1, claims=claims)
    kept = json.loads((tmp_path / "toy-quick.json").read_text())
    assert kept["benchmark"] == "toy"
    assert kept["claims"] == claims
    assert kept["load_before"] == 0.1


def test_a_first_model_is_made_by_the_commands_of_the_readme():
    found = first_model.commands((harness.ROOT.parent / "README.md").read_text())
    assert [line.split()[0] for line in found] == ["make", "source", "mercer", "mercer", "mercer"]
    assert [line.split()[1] for line in found[2:]] == ["fit", "predict", "report"]
    assert all(first_model.TABLE in line or first_model.NEW_TABLE in line for line in found[2:])
    assert f"--target {first_model.TARGET} " in found[2]
    assert not any("#" in line for line in found)


@pytest.mark.parametrize("folder", ["src", "benchmarks", "experiments", "tests", "examples"])
def test_catboost_leaves_no_folder_where_it_is_run(folder):
    """Unless told otherwise it writes `catboost_info/` into the working directory."""
    for path in sorted((harness.ROOT.parent / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and re.search(r"CatBoost(Regressor|Classifier)?$", ast.unparse(node.func)):
                allowed = [k.value for k in node.keywords if k.arg == "allow_writing_files"]
                assert allowed, f"{path}:{node.lineno}: allow_writing_files=False, please."
