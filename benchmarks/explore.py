"""The page of `mercer explore` with 100 000 points in headless Chromium: seconds to draw, to move and for a concept.

`python -m benchmarks explore [--quick]`. The browser draws in software, without a graphics card. Seconds are of the
clock, as a person waits: on a busy machine they say little, and the load is kept beside them.
"""

import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.bounds import file_name, keep, load_at_start, options, print_claims, verdict
from mercer import Nystrom
from mercer.app.explore import Exploration, Server
from tests.app.browser import BROWSER, Browser

ROWS, QUICK_ROWS = 100_000, 5000
EXAMPLES = 10_000
MOST_SECONDS, FEWEST_FRAMES, MOST_OF_A_CONCEPT = 3.0, 20.0, 2.0
N_FRAMES = 60
# Times the frames while the map is moved a little in each. The pixels are read back, so that the time includes drawing.
PAN = """(async () => {
  const map = document.getElementById("points").pointMap, gl = map.gl, pixel = new Uint8Array(4);
  const start = performance.now();
  for (let k = 0; k < %d; k += 1) {
    map.pan(k %% 2 ? 3 : -3, 1);
    await new Promise((done) => requestAnimationFrame(done));
    gl.readPixels(0, 0, 1, 1, gl.RGBA, gl.UNSIGNED_BYTE, pixel);
  }
  return %d / ((performance.now() - start) / 1000);
})()"""


def main(argv: Sequence[str] | None = None) -> None:
    args = options("explore", f"{QUICK_ROWS} points in place of {ROWS}").parse_args(argv)
    if BROWSER is None:
        raise SystemExit("Chromium is not installed.")
    load, n = load_at_start(), QUICK_ROWS if args.quick else ROWS
    random = np.random.default_rng(0)
    group = random.integers(0, 8, size=n)
    X = (random.normal(size=(n, 10)) + 3.0 * random.normal(size=(8, 10))[group]).astype(np.float32)
    model = Nystrom(n_landmarks=500, n_components=32, random_state=0).fit(X[:5000])
    exploration = Exploration(model, X, group.astype(str))
    server = Server(exploration).start()
    with tempfile.TemporaryDirectory() as folder, Browser(Path(folder)) as browser:
        start, before = time.perf_counter(), browser.cpu_seconds() + time.process_time()
        browser.open(server.address)
        browser.wait("document.body?.dataset.ready === 'yes'", seconds=120)
        drawn, cpu_drawn = time.perf_counter() - start, browser.cpu_seconds() + time.process_time() - before
        before = browser.cpu_seconds()
        frames = float(browser.run(PAN % (N_FRAMES, N_FRAMES)))
        share = float(browser.run("document.getElementById('points').pointMap.share"))
        cpu_a_frame = (browser.cpu_seconds() - before) / N_FRAMES
    server.stop()
    examples = np.argsort(-X[:, 0])[: min(EXAMPLES, n // 2)].tolist()
    groups = next(k for k, column in enumerate(exploration.columns) if column.name == "target")
    start, cpu = time.perf_counter(), time.process_time()
    exploration.concept(0, "large", examples, groups)
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    claims = [
        verdict(f"{n} points are drawn (seconds)", drawn, MOST_SECONDS),
        verdict(f"a pan of {n} points (frames a second)", frames, at_least=FEWEST_FRAMES),
        verdict(f"a concept of {len(examples)} examples (seconds)", seconds, MOST_OF_A_CONCEPT),
    ]
    print_claims(claims)
    print(
        f"CPU seconds, all processes: {cpu_drawn:.2f} until drawn, {cpu_a_frame:.4f} a frame, {cpu:.2f} for the concept"
    )
    print(f"share of the points that the page drew in the last frame of the pan: {share:.2f}; all when the map rests")
    measured = {
        "drawn_cpu_seconds": cpu_drawn,
        "concept_cpu_seconds": cpu,
        "frame_cpu_seconds": cpu_a_frame,
        "share_while_moving": share,
    }
    keep(args.out, file_name("explore", args), load, claims=claims, **measured)


if __name__ == "__main__":
    main()
