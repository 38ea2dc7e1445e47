"""The comparisons of README and docs on tables are those of the benchmarks' files."""

import pytest

from benchmarks.readme import HOME, PAGES, SECTIONS, kept_summaries, merged, section, uci_summary, with_sections


@pytest.mark.parametrize("page", PAGES)
def test_a_page_says_what_the_files_say(page):
    text, summaries = (HOME / page).read_text(), kept_summaries()
    assert with_sections(text, {name: summaries[name] for name in PAGES[page]}) == text


def test_a_section_is_a_line_and_a_table():
    summary = {"tables": 3, "columns": ["rank", "seconds"], "rows": [["RFM", "1.2", "3"], ["CatBoost", "1.8", "4"]]}
    line, _, *table = section("classes", summary).splitlines()
    assert "3 tables" in line
    assert table == ["|  | rank | seconds |", "| --- | --- | --- |", "| RFM | 1.2 | 3 |", "| CatBoost | 1.8 | 4 |"]


def test_only_what_is_between_the_marks_changes():
    summary = {"tables": 1, "columns": [], "rows": []}
    name = next(iter(SECTIONS))
    text = f"before\n<!-- benchmark: {name} -->\nold\n<!-- end of benchmark: {name} -->\nafter"
    made = with_sections(text, {name: summary})
    assert "old" not in made
    assert made.startswith("before\n<!--")
    assert made.endswith("-->\nafter")
    with pytest.raises(SystemExit, match="no section"):
        with_sections("nothing", {name: summary})


def test_sets_are_rows_and_the_best_of_a_set_is_bold():
    columns = ["contestant", "yacht", "power", "mean rank"]
    rows = [["GPRegressor()", "0.30 (0.02)", "3.4 (0.1)", "1.5"], ["GP-RBF", "0.1 (0.1)", "1.0 (0.1)", ""]]
    rows += [["CatBoost", "1.03 (0.1)", "", "2"], ["CatBoost (uncertainty)", "0.01 (0.1)", "0.1", ""]]
    report = {"tables": [{"title": "RMSE: mean", "columns": columns, "rows": rows}]}
    found = uci_summary(report, "RMSE")
    assert found["columns"] == ["GPRegressor()", "CatBoost"]
    assert found["rows"] == [["yacht", "**0.30**", "1.03"], ["power", "**3.4**", "-"], ["mean rank", "**1.5**", "2"]]


def test_sets_that_were_not_measured_again_keep_their_rows():
    before = {"columns": ["seeds", "start"], "rows": [["coil20", 5, "87.1"], ["digits", 1, "93.1"]]}
    now = {"columns": ["start", "seeds"], "rows": [["digits", "93.3", 3], ["adult", "83.8", 3]]}
    assert merged(before, now) == [["coil20", "87.1", 5], ["digits", "93.3", 3], ["adult", "83.8", 3]]
    with pytest.raises(SystemExit, match="other columns"):
        merged(before, {"columns": [], "rows": []})
