"""A table with every kind of column and missing values everywhere, for the tests of tables."""

import subprocess
import sys

import numpy as np
import pandas as pd

# The kind of each column.
KINDS = {
    "age": "number",
    "rooms": "number",
    "owner": "number",
    "garage": "number",
    "price in strings": "number",
    "waited": "number",
    "city": "category",
    "class": "category",
    "built": "date",
    "sold": "date",
    "seen": "date",
    "description": "text",
    "constant": "constant",
}


def holes(column, random, share=0.1):
    return column.mask(random.random(len(column)) < share)


def houses(n=150, seed=0, missing=True):
    """Every kind of column, and what is to be learned: whether a house is old or in Oslo."""
    random = np.random.default_rng(seed)
    words = np.array(["garden", "river", "quiet", "central", "bright", "cellar", "balcony", "station"])
    hours = pd.to_timedelta(random.integers(0, 900 * 24, n), unit="h")
    days = pd.Timestamp("2019-03-04") + pd.to_timedelta(random.integers(0, 1500, n), unit="D")
    age, city = random.gamma(3.0, 15.0, n), np.array(["Oslo", "Rome", "Paris"])[random.integers(0, 3, n)]
    table = pd.DataFrame(
        {
            "age": age,
            "rooms": random.integers(1, 9, n),
            "owner": random.random(n) < 0.5,
            "garage": pd.array(random.integers(0, 3, n), dtype="Int64"),
            "price in strings": [f"{value:.3f}" for value in random.normal(300.0, 50.0, n)],
            "waited": pd.to_timedelta(random.integers(1, 500, n), unit="h"),
            "city": city,
            "class": pd.Categorical(random.integers(1, 5, n)),
            "built": pd.Timestamp("2020-01-01") + hours,
            "sold": days.strftime("%d/%m/%Y"),
            "seen": pd.Series(days).dt.tz_localize("Europe/Paris"),
            "description": [" ".join(random.choice(words, 4)) + f" {number}" for number in random.integers(0, 999, n)],
            "constant": 7,
        }
    )
    if missing:
        for name in table.columns[:-1]:
            table[name] = holes(table[name], random)
        table["price in strings"] = table["price in strings"].fillna("N/A")
        table["sold"] = table["sold"].fillna(" ? ")
    return table, pd.Series(np.where((age > 45.0) | (city == "Oslo"), "dear", "cheap"), name="target")


def in_a_fresh_process(code, *arguments):
    done = subprocess.run([sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()
