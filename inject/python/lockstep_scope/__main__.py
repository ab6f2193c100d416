# SPDX-License-Identifier: Apache-2.0

"""Runs a script or module as __main__, with all hooks installed."""

from __future__ import annotations

import argparse
import builtins
import io
import os
import runpy
import sys
import types
import zipfile
from importlib.machinery import SourceFileLoader
from types import TracebackType
from typing import List, Optional, Tuple, Type

from . import hooks, steps


def _count(text: str) -> int:
    number = steps.read_every(text)
    if not number:
        raise argparse.ArgumentTypeError(f"got {text!r}; want a number from 1")
    return number


def _hooks(text: str) -> str:
    unknown = hooks.select(text)[1]
    if unknown:
        raise argparse.ArgumentTypeError(f"got {unknown[0]!r}; want {hooks.WANTED}")
    return text


def _parse(arguments: List[str]) -> Tuple[argparse.Namespace, List[str]]:
    parser = argparse.ArgumentParser(
        prog="python -m lockstep_scope",
        usage="%(prog)s [--hooks LIST] [--modules LIST] [--every N] (SCRIPT | -m MODULE) [ARGUMENT ...]",
        description="Runs a Python program whose steps and host phases Lockstep records.",
        allow_abbrev=False,
    )
    parser.add_argument("--hooks", metavar="LIST", type=_hooks,
                        help="which: all,-gc (default: LOCKSTEP_SCOPE_HOOKS, or all)")  # fmt: skip
    parser.add_argument("--modules", metavar="LIST", help="submodules with scopes of their own: encoder.*,head")
    parser.add_argument("--every", metavar="N", type=_count, help="record scopes in every N-th step only")
    parser.add_argument("-m", dest="module", metavar="MODULE", nargs=argparse.REMAINDER, help="run a module")
    parser.add_argument("program", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    # What comes after the script or -m MODULE is the program's own.
    options = parser.parse_args(arguments)
    program = options.module if options.module is not None else options.program
    if not program:
        parser.error("want a script, or -m and a module")
    return options, program


def _excepthook(kind: Type[BaseException], error: BaseException, trace: Optional[TracebackType]) -> None:
    """Prints what `python script.py` prints: without the runner's own frames."""
    ours = (__file__, runpy.__file__, "<frozen runpy>")
    while trace is not None and trace.tb_frame.f_code.co_filename in ours:
        if trace.tb_next is None and not isinstance(error, SyntaxError):
            break
        trace = trace.tb_next
    sys.__excepthook__(kind, error.with_traceback(trace), trace)


def _fresh_main() -> types.ModuleType:
    # It stays after the program's last line: threads and exit handlers need it.
    module = types.ModuleType("__main__")
    module.__dict__["__builtins__"] = builtins
    sys.modules["__main__"] = module
    return module


def _run_script(path: str) -> None:
    if os.path.isdir(path) or zipfile.is_zipfile(path):
        sys.path[0:1] = []
        runpy.run_path(path, run_name="__main__")
        return
    try:
        with io.open_code(path) as file:
            source = file.read()
    except OSError as error:
        print(f"{sys.executable}: can't open file {path!r}: [Errno {error.errno}] {error.strerror}", file=sys.stderr)
        sys.exit(2)
    sys.path[0] = os.path.dirname(os.path.realpath(path))
    module = _fresh_main()
    module.__file__ = path
    module.__dict__["__cached__"] = None
    module.__loader__ = SourceFileLoader("__main__", path)
    exec(compile(source, path, "exec", dont_inherit=True), module.__dict__)


def _run_module(name: str) -> None:
    sys.path[0] = os.getcwd()
    _fresh_main()
    runpy._run_module_as_main(name)  # type: ignore[attr-defined]  # what `python -m` calls


def main(arguments: Optional[List[str]] = None) -> None:
    """Runs what the arguments say; exits as the program does."""
    options, program = _parse(sys.argv[1:] if arguments is None else arguments)
    hooks.install(options.hooks, options.modules)
    if options.every is not None:  # rather than what the environment says
        steps.every(options.every)
    sys.excepthook = _excepthook
    sys.argv = program
    if options.module is not None:
        _run_module(program[0])
    else:
        _run_script(program[0])


if __name__ == "__main__":
    main()
