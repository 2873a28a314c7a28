"""Reads a package's syntax trees and says where they break the layering.

An import goes to a strictly lower rank, or stays inside its own unit (a top-level module or
folder) without a circle. Some things only some ranks may do.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

RANKS = {
    "allowed": 0,
    "errors": 0,
    "clock": 0,
    "exchange": 0,
    "version": 0,
    "http": 1,
    "generation": 1,
    "faults": 1,
    "scheduler": 1,
    "playback": 1,
    "dialects": 2,
    "config": 2,
    "truth": 3,
    "recording": 3,
    "app": 4,
    "binding": 5,
    "ledgerfile": 5,
    "aio": 5,
    "listener": 5,
    "scripting": 5,
    "service": 5,
    "tap": 5,
    "timer": 5,
    "tls": 5,
    "protocol": 6,
    "server": 7,
    "virtual": 7,
    "workers": 8,
    "calibrate": 8,
    "cli": 9,
    "__init__": 9,
    "__main__": 10,
    "pytest_plugin": 10,
}

# Ranks 0 to 4 take time as an argument and do no I/O.
LAST_PURE = 4
IMPURE_MODULES = {
    *("asyncio", "uvloop", "socket", "ssl", "select", "selectors"),
    *("threading", "multiprocessing", "concurrent", "subprocess"),
}
IMPURE_CALLS = {"open", "print"}

# Only from this rank on is the process ours: its arguments, environment, signals, logging and exit.
PROCESS = 9
PROCESS_NAMES = {
    *("os.environ", "os.environb", "os.getenv", "os.putenv", "sys.argv", "sys.exit", "os._exit", "os.abort"),
    *("logging.basicConfig", "logging.config", "logging.disable", "signal.signal"),
}
PROCESS_METHODS = {"add_signal_handler", "addHandler", "setLevel"}
PROCESS_BUILTINS = {"SystemExit", "exit", "quit", "__import__"}


def violations(package: Path) -> list[str]:
    """What breaks the layering.

    Args:
        package: The package's folder; it is read as `mockllm`, whatever it is called.

    Returns:
        One line per breach, `module: what`; empty when there is none.
    """
    modules = {_name(package, path): ast.parse(path.read_text(encoding="utf-8")) for path in package.rglob("*.py")}
    found: list[str] = []
    inside: dict[str, set[str]] = {}
    for name, tree in sorted(modules.items()):
        rank = RANKS.get(_unit(name))
        if rank is None:
            found.append(f"{name}: has no rank; give {_unit(name)!r} its place in the table")
            continue
        targets = set(_own_imports(name, tree, modules))
        inside[name] = {target for target in targets if _unit(target) == _unit(name)}
        breaches = [*_upward(rank, targets - inside[name]), *_forbidden(name, rank, tree)]
        found += [f"{name}: {breach}" for breach in dict.fromkeys(breaches)]
    return found + [f"{' -> '.join(circle)}: imports in a circle" for circle in _circles(inside)]


def _name(package: Path, path: Path) -> str:
    """Dotted name inside the package; a folder's `__init__` is the folder, the package's own is `__init__`."""
    parts = path.relative_to(package).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


def _unit(name: str) -> str:
    return name.split(".")[0]


def _upward(rank: int, targets: set[str]) -> Iterator[str]:
    for target in sorted(targets):
        other = RANKS.get(_unit(target), PROCESS)
        if other >= rank:
            yield f"imports {target} (rank {other}), which is not below rank {rank}"


def _own_imports(name: str, tree: ast.Module, modules: dict[str, ast.Module]) -> Iterator[str]:
    """The package's own modules that a module imports, wherever in it the import stands."""
    is_folder = name == "__init__" or any(other.startswith(f"{name}.") for other in modules)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            ours = [alias.name for alias in node.names if _unit(alias.name) == "mockllm"]
            yield from (path.removeprefix("mockllm").lstrip(".") or "__init__" for path in ours)
        elif isinstance(node, ast.ImportFrom):
            base = _base(name, node, is_folder)
            if base is not None:
                inner = [f"{base}.{alias.name}".lstrip(".") for alias in node.names]
                yield from (path if path in modules else base or "__init__" for path in inner)


def _base(name: str, node: ast.ImportFrom, is_folder: bool) -> str | None:
    """The package's module that a `from … import` names, `""` for the package itself; None for another's."""
    module = node.module or ""
    if node.level == 0:
        return module.removeprefix("mockllm").lstrip(".") if _unit(module) == "mockllm" else None
    here = [] if name == "__init__" else name.split(".")
    up = node.level - is_folder
    return ".".join([*here[: len(here) - up], *filter(None, [module])])


def _forbidden(name: str, rank: int, tree: ast.Module) -> Iterator[str]:
    for used in _used(tree):
        top = _unit(used)
        if top == "time" and name != "clock":
            yield "imports time; only clock may"
        elif rank <= LAST_PURE and top in IMPURE_MODULES:
            yield f"imports {top}; ranks 0 to {LAST_PURE} may not"
        elif rank < PROCESS and (used in PROCESS_NAMES or top == "signal"):
            yield f"uses {used}; only rank {PROCESS} may"
    for node in ast.walk(tree):
        match node:
            case ast.AsyncFunctionDef() | ast.Await() | ast.AsyncFor() | ast.AsyncWith() if rank <= LAST_PURE:
                yield f"is async at line {node.lineno}; ranks 0 to {LAST_PURE} may not be"
            case ast.Attribute(attr=attr) if rank < PROCESS and attr in PROCESS_METHODS:
                yield f"uses .{attr}; only rank {PROCESS} may"
            case ast.Call(func=function, args=args) if rank < PROCESS and _is_import_call(function):
                if not _named_outside(args):
                    yield f"imports by a computed or own name at line {node.lineno}; only rank {PROCESS} may"
            case ast.Name(id=word) if rank < PROCESS and word in PROCESS_BUILTINS:
                yield f"uses {word}; only rank {PROCESS} may"
            case ast.Call(func=ast.Name(id=word)) if rank <= LAST_PURE and word in IMPURE_CALLS:
                yield f"uses {word}; ranks 0 to {LAST_PURE} do no I/O"


def _is_import_call(function: ast.expr) -> bool:
    return ast.unparse(function).split(".")[-1] == "import_module"


def _named_outside(args: list[ast.expr]) -> bool:
    """Whether a call of `import_module` plainly names a package other than ours (an extra, say)."""
    match args:
        case [ast.Constant(value=str(name))]:
            return not name.startswith(".") and _unit(name) not in {"mockllm", "time", *IMPURE_MODULES}
    return False


def _used(tree: ast.Module) -> Iterator[str]:
    """Dotted names from other packages: what is imported, and what is read off an imported module."""
    aliases: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
            aliases |= {alias.asname: alias.name for alias in node.names if alias.asname}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            owner = aliases.get(node.value.id, node.value.id)
            if f"{owner}.{node.attr}" in PROCESS_NAMES:
                yield f"{owner}.{node.attr}"


def _circles(imports: dict[str, set[str]]) -> Iterator[list[str]]:
    """One circle of imports for each import that closes one."""
    state: dict[str, str] = {}

    def visit(name: str, path: list[str]) -> Iterator[list[str]]:
        state[name] = "open"
        for target in sorted(imports.get(name, ())):
            if state.get(target) == "open":
                yield [*path[path.index(target) :], target]
            elif target not in state:
                yield from visit(target, [*path, target])
        state[name] = "done"

    for name in sorted(imports):
        if name not in state:
            yield from visit(name, [name])
