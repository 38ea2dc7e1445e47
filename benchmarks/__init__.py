"""Benchmarks of speed and memory, each compared with peers in the same run."""

from benchmarks.harness import Benchmark, RatioClaim

__all__ = ["Benchmark", "RatioClaim"]
