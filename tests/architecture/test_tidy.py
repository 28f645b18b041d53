"""The house's limits, as tests: size, arguments, nesting, words, and a test beside each module.

Each failure names the place and what to do about it. The limits are CONTRIBUTING.md's; raising one of them is a
change of that page and of this file together. Layers between packages are import-linter's (`make layers`).
"""

from __future__ import annotations

import ast
import functools
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts.house import SERVER, SPARK

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = (*SERVER, *SPARK)

MODULE_LINES = 600  # 400 is the aim; what stands between needs its reason in the module's docstring
FUNCTION_LINES = 70
PARAMETERS = 6
CONSTRUCTOR_PARAMETERS = 8  # a constructor is given the parts that it is made of
NESTING = 4
LINE_COLUMNS = 120
PRINTING = ("cli", "bench", "scripts")
FORBIDDEN_NAMES = ("Manager", "Helper", "Util", "Utils", "Data", "Info")

# Their contents are tested elsewhere, for the reason given.
UNMIRRORED = {
    "offline/streams.py": "declarations only",
    "protocol/events.py": "declarations only",
    "broker/turn/clock.py": "declarations only",
    "broker/queue/port.py": "declarations only",
    "broker/report/observer.py": "declarations only",
}

Function = ast.FunctionDef | ast.AsyncFunctionDef
_BLOCKS = (ast.If, ast.For, ast.While, ast.With, ast.Try, ast.AsyncFor, ast.AsyncWith, ast.Match)


def modules() -> list[Path]:
    """Return every Python module of the product."""
    found = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]
    return [path for path in found if "__pycache__" not in path.parts]


@functools.cache
def tree(path: Path) -> ast.Module:
    """Return the parsed module."""
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


@functools.cache
def nodes(path: Path) -> list[ast.AST]:
    """Return everything in the module."""
    return list(ast.walk(tree(path)))


@pytest.fixture(scope="module", autouse=True)
def _forgotten() -> Iterator[None]:
    """Millions of nodes, which each full collection of the tests behind these would look at."""
    yield
    nodes.cache_clear()
    tree.cache_clear()


def functions(path: Path) -> Iterator[Function]:
    """Yield every function and method."""
    for node in nodes(path):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def name(path: Path) -> str:
    """Return the path as it is written in messages."""
    return path.relative_to(ROOT).as_posix()


def refuse(offences: list[str], advice: str) -> None:
    """Fail with all offences and what to do."""
    if offences:
        pytest.fail("\n".join([*offences, f"=> {advice}"]), pytrace=False)


def test_modules_are_short() -> None:
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in modules()}
    refuse(
        [f"{name(path)}: {count} lines" for path, count in lengths.items() if count > MODULE_LINES],
        f"split a module at the seam it already has; the limit is {MODULE_LINES}, the aim 400",
    )


def test_functions_are_short() -> None:
    offences = [
        f"{name(path)}:{node.lineno}: {node.name} has {length} lines"
        for path in modules()
        for node in functions(path)
        if (length := (node.end_lineno or node.lineno) - node.lineno + 1) > FUNCTION_LINES
    ]
    refuse(offences, f"a function has at most {FUNCTION_LINES} lines: name its steps")


def test_functions_take_few_parameters() -> None:
    offences = []
    for path in modules():
        for node in functions(path):
            given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            count = sum(argument.arg not in {"self", "cls"} for argument in given)
            limit = CONSTRUCTOR_PARAMETERS if node.name == "__init__" else PARAMETERS
            if count > limit:
                offences.append(f"{name(path)}:{node.lineno}: {node.name} has {count} parameters")
    refuse(offences, f"at most {PARAMETERS}: pass the object that they belong to")


def depth(node: ast.AST) -> int:
    """Return how deep blocks nest below a node; an `elif` counts as its `if`."""
    deepest = 0
    for field, value in ast.iter_fields(node):
        children = value if isinstance(value, list) else [value]
        is_elif = isinstance(node, ast.If) and field == "orelse" and len(children) == 1
        for child in children:
            if not isinstance(child, ast.AST) or isinstance(child, Function | ast.ClassDef):
                continue
            own = isinstance(child, _BLOCKS) and not (is_elif and isinstance(child, ast.If))
            deepest = max(deepest, depth(child) + own)
    return deepest


def test_functions_nest_little() -> None:
    offences = [
        f"{name(path)}:{node.lineno}: {node.name} nests {found} blocks"
        for path in modules()
        for node in functions(path)
        if (found := depth(node)) > NESTING
    ]
    refuse(offences, f"at most {NESTING}: return early, or name the inner part")


def test_lines_are_short() -> None:
    offences = [
        f"{name(path)}:{number}: {len(line)} columns"
        for path in modules()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if len(line) > LINE_COLUMNS
    ]
    refuse(offences, f"`make fmt` wraps code at 100; texts and comments end by {LINE_COLUMNS}")


def test_every_module_says_what_it_is() -> None:
    offences = [name(path) for path in modules() if not ast.get_docstring(tree(path))]
    refuse(
        offences,
        "write a module docstring: what it is, the state it owns, who calls it, invariants",
    )


def test_only_programs_print() -> None:
    offences = [
        f"{name(path)}:{node.lineno}"
        for path in modules()
        if path.relative_to(ROOT).parts[0] not in PRINTING
        for node in nodes(path)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "print"
    ]
    refuse(offences, "call an Observer method; only broker.report.log turns events into lines")


def test_no_empty_names() -> None:
    offences = [
        f"{name(path)}:{node.lineno}: {node.name}"
        for path in modules()
        for node in nodes(path)
        if isinstance(node, ast.ClassDef) and node.name.endswith(FORBIDDEN_NAMES)
    ]
    refuse(offences, "name the class after what it is in AMQP or on disk")


def test_no_swallowed_errors() -> None:
    offences = []
    for path in modules():
        for node in nodes(path):
            if isinstance(node, ast.ExceptHandler):
                silent = all(isinstance(step, ast.Pass) for step in node.body)
                broad = isinstance(node.type, ast.Name) and node.type.id in {
                    "Exception",
                    "BaseException",
                }
                if node.type is None or (silent and broad):
                    offences.append(f"{name(path)}:{node.lineno}")
    refuse(offences, "catch the exception that you expect; the session is the place for all others")


def test_no_unowned_todo() -> None:
    offences = [
        f"{name(path)}:{number}: {line.strip()}"
        for path in modules()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if re.search(r"\b(TODO|FIXME|XXX)\b", line)
    ]
    refuse(offences, "do it, or describe it in an issue")


def covered() -> set[str]:
    """Return the modules that a test's docstring names on a line `Covers: a/b.py, c/d.py`."""
    found: set[str] = set()
    for path in (ROOT / "tests").rglob("test_*.py"):
        text = path.read_text(encoding="utf-8")
        if "Covers:" not in text:
            continue  # to parse every test takes seconds
        docstring = ast.get_docstring(ast.parse(text)) or ""
        for line in re.findall(r"^Covers:(.*(?:\n .*)*)", docstring, re.MULTILINE):
            found.update(re.findall(r"[\w/]+\.py", line))
    return found


def test_every_module_has_its_test() -> None:
    offences = []
    elsewhere = covered()
    for path in modules():
        inner = path.relative_to(ROOT)
        if path.name == "__init__.py" or name(path) in UNMIRRORED or name(path) in elsewhere:
            continue
        stem = path.stem.lstrip("_")
        folder = ROOT / "tests" / "unit" / inner.parent
        found = [*folder.glob(f"test_{stem}.py"), *folder.glob(f"test_{stem}_*.py")]
        if not found:
            offences.append(f"{name(path)}: no {folder.relative_to(ROOT)}/test_{stem}.py")
    refuse(
        offences,
        "a module's own test lies at the same place below tests/unit; one that is tested together with "
        "others is named by that test's docstring, on a line `Covers: broker/one.py, broker/two.py`",
    )


def test_no_test_outlives_its_module() -> None:
    known = {
        (path.relative_to(ROOT).parent.as_posix(), path.stem.lstrip("_"))
        for package in PACKAGES
        for path in [*(ROOT / package).rglob("*.py"), *(ROOT / package).rglob("*.pyx")]
    }
    offences = []
    for path in sorted((ROOT / "tests" / "unit").rglob("test_*.py")):
        folder = path.parent.relative_to(ROOT / "tests" / "unit").as_posix()
        stem = path.stem.removeprefix("test_")
        packages = {folder, f"{folder}/{stem}"}
        # A package's own code, in its __init__.py, has the package's name.
        if folder == stem or folder.endswith(f"/{stem}"):
            continue
        if folder.split("/")[0] in PACKAGES and not any(
            place in packages and (stem == module or stem.startswith(f"{module}_"))
            for place, module in known
        ):
            offences.append(name(path))
    refuse(offences, "name the test after the module that it tests: test_<module>[_<aspect>].py")


def test_no_dead_module() -> None:
    imported: set[str] = set()
    for path in modules():
        for node in nodes(path):
            if isinstance(node, ast.Import):
                imported.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                imported.add(node.module)
                imported.update(f"{node.module}.{alias.name}" for alias in node.names)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                imported.add(node.value)  # import_module, and tables that name modules
                imported.add(f"burrowmq.cli.commands.{node.value}")  # as cli.registry does
    started = {
        "burrowmq.broker.__main__",
        "burrowmq.cli.__main__",
        "burrowmq.config.example",
        "burrowmq.embedded.plugin",  # an entry point of pytest
        "burrowmq.management.download.rabbitmqadmin",  # where it was downloaded to
        "burrowmq.offline.__main__",
        "burrowmq.protocol.codec._codec_py",
        "burrowmq.storage.record._record_py",
        "pyspark_amqp_jobs.__main__",
    }
    offences = []
    for path in modules():
        dotted = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        if path.parts[len(ROOT.parts)] in SERVER:
            dotted = f"burrowmq.{dotted}"
        if path.name != "__init__.py" and dotted not in imported | started:
            offences.append(name(path))
    refuse(offences, "nothing imports it: wire it in or remove it")


def test_what_a_start_loads_makes_its_records_cheaply() -> None:
    loaded = ("protocol", "storage", "config", "broker", "embedded")
    slow = {"dataclasses": "dataclass", "typing": "NamedTuple"}
    refuse(
        [
            f"{name(path)}:{node.lineno} {slow[node.module]}"
            for path in modules()
            if path.relative_to(ROOT).parts[0] in loaded
            for node in nodes(path)
            if isinstance(node, ast.ImportFrom)
            and node.module in slow
            and slow[node.module] in {alias.name for alias in node.names}
        ],
        "from burrowmq.records import it: it is the same, and made in a sixth of the time",
    )


def test_every_folder_is_linked_into_its_distribution() -> None:
    offences = []
    for distribution, folders in (("burrowmq", SERVER), ("distributions/pyspark-amqp", SPARK)):
        links = {path.name for path in (ROOT / distribution).iterdir() if path.is_dir()}
        offences += [f"{distribution}/{folder}" for folder in sorted(set(folders) - links)]
        offences += [
            f"{distribution}/{folder} leads elsewhere"
            for folder in folders
            if (ROOT / distribution / folder).resolve() != ROOT / folder
        ]
    refuse(offences, "ln -s ../FOLDER burrowmq/FOLDER (ADR 16)")


def test_the_server_is_imported_by_its_whole_name() -> None:
    offences = []
    folders = "|".join(SERVER)
    looks_like_it = re.compile(rf"\b(from[\s\\]+|import[\s\\]+(.*,[\s\\]*)?)({folders})\b")
    for path in [*modules(), *sorted((ROOT / "tests").rglob("*.py"))]:
        if not looks_like_it.search(path.read_text()):
            continue  # to parse every test takes seconds
        for node in nodes(path):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names = [node.module]
            offences += [f"{name(path)}: {each}" for each in names if each.split(".")[0] in SERVER]
    refuse(offences, "import burrowmq.<folder>: an installed package has no other name")


def test_files_have_plain_names() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True
    ).stdout
    odd = [path for path in listed.split("\0") if not re.fullmatch(r"[A-Za-z0-9._/@+-]*", path)]
    assert not odd, f"left behind by a test run? {odd}"


def test_no_test_imports_another() -> None:
    """What two modules share would run, be renamed and be deleted with the tests of one."""
    imports = re.compile(r"^\s*(?:from|import) tests\.(?:\w+\.)*test_\w+", re.MULTILINE)
    offences = [
        f"{path.relative_to(ROOT)}: {found.strip()}"
        for path in sorted((ROOT / "tests").rglob("*.py"))
        for found in imports.findall(path.read_text())
    ]
    refuse(offences, "what several tests need stands in tests/support or beside them")
