"""The size of the code, and how much of it a call passes through.

Lines and modules by package; the files and functions of hcpf that run during one call on the
bundled data (compiled code and what runs at import are not seen); and the longest chain of imports.
Another checkout can be measured with --source, if it has the same public names.

    .venv/bin/python benchmarks/code_size.py --source ../before
"""

import argparse
import ast
import io
import json
import sys
import tempfile
import threading
import tokenize
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import common

# -- lines ----------------------------------------------------------------------------------------


def lines_by_package(package: Path) -> list[dict[str, Any]]:
    """Modules and lines of each package and top-level module, and in all."""
    counts: dict[str, Counter[str]] = {}
    for path in sorted(package.rglob("*.py")):
        name = path.relative_to(package).parts[0]
        counts.setdefault(name, Counter()).update(count_lines(path.read_text()))
    total = sum(counts.values(), Counter[str]())
    return [{"package": name, **found} for name, found in [*counts.items(), ("all", total)]]


def count_lines(source: str) -> dict[str, int]:
    """Lines of code, of docstrings and of comments only; one module."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    skipped = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
    code: set[int] = set()
    comments: set[int] = set()
    for token in tokens:
        if token.type == tokenize.COMMENT:
            comments.add(token.start[0])
        elif token.type not in (*skipped, tokenize.ENDMARKER):
            code.update(range(token.start[0], token.end[0] + 1))
    docstrings = {
        line
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if isinstance(node.value.value, str)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    return {
        "modules": 1,
        "lines": len(source.splitlines()),
        "code": len(code - docstrings),
        "docstrings": len(docstrings),
        "comments": len(comments - code),
    }


# -- the walk -------------------------------------------------------------------------------------


def walk() -> list[dict[str, Any]]:
    """Files and functions that each call passes through (child process)."""
    from hcpf import HCPF, Interactions, datasets, report

    package = str(Path(sys.modules["hcpf"].__file__ or "").parent)
    settings: dict[str, Any] = {"n_components": 5, "max_iter": 10, "random_state": 0}
    with tempfile.TemporaryDirectory() as folder:
        file, page = Path(folder, "sales.csv"), Path(folder, "report.html")
        data = datasets.retail()
        rows, columns = data.matrix.nonzero()
        lines = zip(data.users[rows], data.items[columns], data.values, strict=True)
        file.write_text("user,item,value\n" + "".join(f"{u},{i},{v}\n" for u, i, v in lines))
        model = HCPF(element="gamma", **settings).fit(data)
        calls: dict[str, Callable[[], object]] = {
            "read": lambda: Interactions.read(file, user="user", item="item", value="value"),
            "fit": lambda: HCPF(element="gamma", **settings).fit(data),
            "fit, auto": lambda: HCPF(**settings).fit(data),
            "recommend": lambda: model.recommend(12347),
            "fold_in": lambda: model.fold_in({"85123A": 12.0}),
            "report": lambda: report.write_report(model, page, overwrite=True),
        }
        found: list[dict[str, Any]] = []
        for name, call in calls.items():
            call()  # imports and compiles what the call needs
            codes = codes_during(call, package)
            files = {code.co_filename for code in codes}
            found.append({"call": name, "files": len(files), "functions": len(codes)})
    return found


def codes_during(call: Callable[[], object], package: str) -> set[Any]:
    """The code objects of named functions of a package that run during a call, in all threads."""
    seen: set[Any] = set()

    def note(frame: Any, event: str, argument: Any) -> None:
        del argument
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(package):
            seen.add(code)

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return {code for code in seen if not code.co_name.startswith("<")}


# -- imports --------------------------------------------------------------------------------------


def longest_chain() -> list[str]:
    """The longest chain of modules that import each other in turn (child process).

    Modules that import each other in a circle, by imports inside functions, count as one.
    """
    import grimp
    import numpy as np
    from scipy import sparse

    graph = grimp.build_graph("hcpf", exclude_type_checking_imports=True)
    names = sorted(graph.modules - {"hcpf"})  # the root loads what it exports on first use
    position = {name: j for j, name in enumerate(names)}
    edges = np.array(
        [
            (j, position[other])
            for name, j in position.items()
            for other in graph.find_modules_directly_imported_by(name) & position.keys()
        ]
    )
    imports = sparse.csr_array((np.ones(len(edges)), edges.T), shape=(len(names), len(names)))
    count, circle = sparse.csgraph.connected_components(imports, connection="strong")
    below = [set(circle[edges[circle[edges[:, 0]] == c, 1]]) - {c} for c in range(count)]
    labels = [" + ".join(names[j] for j in np.flatnonzero(circle == c)) for c in range(count)]

    @cache
    def chain(c: int) -> tuple[int, ...]:
        return (c, *max(map(chain, sorted(below[c])), key=len, default=()))

    return [labels[c] for c in max(map(chain, range(count)), key=len)]


TASKS: dict[str, Callable[[], Any]] = {"walk": walk, "chain": longest_chain}


def main() -> None:
    parser = common.parser(__doc__)
    here = Path(__file__).resolve().parent.parent
    parser.add_argument("--source", type=Path, default=here, help="the checkout to measure")
    parser.add_argument("--task", choices=TASKS, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.task:
        print(json.dumps(TASKS[args.task]()))
        return
    source = args.source.resolve()
    header = common.start("Size of the code", f"{source.name}, commit {common.commit(source)}")
    sizes = lines_by_package(source / "src" / "hcpf")
    columns = ("modules", "lines", "code", "docstrings", "comments")
    common.table(sizes, {"package": "", **dict.fromkeys(columns, ",")})
    env = {"PYTHONPATH": str(source / "src")}
    calls = common.child("code_size.py", "--task", "walk", env=env)
    common.table(calls, {"call": "", "files": "d", "functions": "d"})
    chain = common.child("code_size.py", "--task", "chain", env=env)
    print(f"Longest chain of imports, {len(chain)} modules: {' -> '.join(chain)}")
    common.finish(header, {"sizes": sizes, "calls": calls, "chain": chain}, args.json)


if __name__ == "__main__":
    main()
