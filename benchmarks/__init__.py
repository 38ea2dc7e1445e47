"""Speed and memory, side by side with peers in one run."""

from benchmarks.harness import Benchmark, RatioClaim

__all__ = ["Benchmark", "RatioClaim"]
