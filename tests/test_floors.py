"""The house stands: a module imports from lower floors only, or from its own room."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent / "src" / "mercer"

# From the ground up. Within a floor a room may import those that stand before it in the list, except where the rooms
# are equals: the families do not know each other.
FLOORS = [
    ["exceptions", "checks", "blocks", "storage", "linalg", "rows"],
    ["mahalanobis", "kernels", "views", "losses", "training", "networks", "sinkhorn", "metrics"],
    ["agop", "selection", "landmarks"],
    ["tabular_models", "discriminant", "embedding", "clustering"],
    ["datasets", "tables", "explain", "plots", "image_features", "io"],
    ["papers"],
    ["app"],
    ["__main__"],
]
FAMILIES = FLOORS[3]
# The app has floors of its own: files of people, projects on them, reports and pages of projects, the command line.
APP = ["files", "projects", "report", "explore", "cli"]
# Modules that are rooms by themselves, because there is no more to say on their subject.
LOOSE = {"__init__", "__main__", "agop", "blocks", "checks", "exceptions", "mahalanobis", "selection"}
HEIGHT_OF = {room: height for height, room in enumerate(room for floor in FLOORS for room in floor)}


def room_of(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imported_rooms(path: Path, package: str = "mercer.") -> set[str]:
    """The rooms of a package that a module imports, inside functions too."""
    rooms = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name} imports relatively: absolute names show the floor."
            # `from mercer import agop` names a room, `from mercer.agop import agop` does not.
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        rooms |= {name.removeprefix(package).split(".")[0] for name in names if name.startswith(package)}
    return rooms


MODULES = [path for path in sorted(ROOT.rglob("*.py")) if path != ROOT / "__init__.py"]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_go_down(path):
    room = room_of(path)
    assert room in HEIGHT_OF, f"{room} has no floor: give it one in FLOORS."
    wrong = {other for other in imported_rooms(path) - {room} if HEIGHT_OF.get(other, 99) >= HEIGHT_OF[room]}
    wrong |= set(FAMILIES) & imported_rooms(path) - {room} if room in FAMILIES else set()
    assert not wrong, f"{path.relative_to(ROOT)} imports {sorted(wrong)}, which is not on a lower floor."


@pytest.mark.parametrize(
    "path",
    [path for path in MODULES if path.parent.parent == ROOT / "app"],
    ids=lambda path: path.parent.name + "/" + path.name,
)
def test_imports_within_the_app_go_down(path):
    room = path.parent.name
    wrong = {other for other in imported_rooms(path, "mercer.app.") - {room} if APP.index(other) >= APP.index(room)}
    assert not wrong, f"{path.relative_to(ROOT)} imports app/{sorted(wrong)}, which is not on a lower floor."


def test_every_floor_has_its_rooms():
    assert {room_of(path) for path in MODULES} == set(HEIGHT_OF)
    assert 6 <= len(FLOORS) <= 8


def test_no_module_stands_loose():
    assert {path.stem for path in ROOT.glob("*.py")} == LOOSE


def test_importing_the_package_is_light():
    """`import mercer` brings neither torch nor scikit-learn: they come with the first name that needs them."""
    import subprocess
    import sys

    code = "import sys, mercer; print([m for m in ('torch', 'sklearn', 'numpy', 'matplotlib') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"
