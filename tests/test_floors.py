"""The house stands: a module imports from lower floors only, or from its own room."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent / "src" / "mercer"

# From the ground up. Where a floor has steps, the later may stand on the earlier.
FLOORS = [
    ["exceptions"],
    ["checks", "blocks", "files", "grouped_rows"],
    ["linalg", "metrics", "pretrained", "scattering", "training", "views", "warping"],
    ["losses", "mahalanobis", "sinkhorn"],
    ["kernels", "networks"],
    ["agop", "nystrom", "selection"],
    ["leverage"],
    ["landmarks"],
    ["kernel_map"],
    ["samples"],
    ["supervised", "embedding", "clustering"],
    ["io", "plots", "datasets", "evaluate", "tables", "explain"],
    ["data_files"],
    ["workflows"],
    ["report"],
    ["cli"],
    ["__main__"],
]
FLOOR_OF = {room: height for height, rooms in enumerate(FLOORS) for room in rooms}


def room_of(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imported_rooms(path: Path) -> set[str]:
    """The rooms that a module imports, inside functions too."""
    rooms = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name} imports relatively: absolute names show the floor."
            names = [node.module]
            if node.module == "mercer":
                names = [f"mercer.{alias.name}" for alias in node.names]
        else:
            continue
        rooms |= {name.split(".")[1] for name in names if name.startswith("mercer.")}
    return rooms


MODULES = [path for path in sorted(ROOT.rglob("*.py")) if path != ROOT / "__init__.py"]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_go_down(path):
    room = room_of(path)
    assert room in FLOOR_OF, f"{room} has no floor: give it one in FLOORS."
    wrong = {other for other in imported_rooms(path) - {room} if FLOOR_OF.get(other, 99) >= FLOOR_OF[room]}
    assert not wrong, f"{path.relative_to(ROOT)} imports {sorted(wrong)}, which is not on a lower floor."


def test_every_floor_has_its_rooms():
    assert {room_of(path) for path in MODULES} == set(FLOOR_OF)


def test_importing_the_package_is_light():
    """`import mercer` brings neither torch nor scikit-learn: they come with the first name that needs them."""
    import subprocess
    import sys

    code = "import sys, mercer; print([m for m in ('torch', 'sklearn', 'numpy', 'matplotlib') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"
