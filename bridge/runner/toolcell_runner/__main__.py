"""Starts the runner. oci/fork/fork.py also loads this file, and itself calls before_preload, warm_up, prepare, main
and ended.

Code that runs here must not see, shadow or break the runner. So its modules are not in sys.modules, and nothing finds
them through sys.path: their import statements call import_module, by way of builtins of their own.
"""
from __future__ import annotations

import builtins
import marshal
import sys
from _frozen_importlib_external import MAGIC_NUMBER
from _thread import RLock
from io import FileIO

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import CodeType, ModuleType
    from typing import Any

FOLDER = __file__.rpartition("/")[0] + "/"
# It is mounted with the package, and made from it.
BYTECODE = f"{FOLDER}__pycache__/%s.{sys.implementation.cache_tag}.pyc"
Module = type(sys)
python_import = builtins.__import__
package = Module("toolcell_runner")  # it has the modules that are loaded
loading: dict[str, ModuleType] = {}  # and this those that are not whole yet
loading_lock = RLock()


def import_module(
        name: str, globals: Any = None, locals: Any = None, fromlist: Sequence[str] = (), level: int = 0) -> ModuleType:
    """Stands in for __import__ in the runner's modules."""
    if not level:
        return python_import(name, globals, locals, fromlist)
    if name:
        return load(name)
    for each in fromlist:
        load(each)
    return package


def load(name: str) -> ModuleType:
    """Returns a module of the runner."""
    module = package.__dict__.get(name)
    return load_first(name) if module is None else module


def load_first(name: str) -> ModuleType:
    """Loads a module. Other threads wait until it is whole; this one may import it again meanwhile."""
    with loading_lock:
        module = package.__dict__.get(name) or loading.get(name)
        if module is not None:
            return module
        path = f"{FOLDER}{name}.py"
        code = code_of(name, path)
        # Pickle and tracebacks name a class by its module: users meet ours as mcp.runtime.
        loading[name] = module = Module("mcp.runtime")
        module.__dict__.update(__file__=path, __builtins__=own_builtins)
        try:
            exec(code, module.__dict__)
            setattr(package, name, module)
        finally:
            del loading[name]
        return module


def code_of(name: str, path: str) -> CodeType:
    """Returns the code of a module. importlib's loaders take longer, and fail where code has replaced __import__."""
    try:
        with FileIO(BYTECODE % name) as file:
            data = file.read()
        if data.startswith(MAGIC_NUMBER):
            code: CodeType = marshal.loads(data[16:])
            return code
    except OSError:
        pass  # there is none
    with FileIO(path) as file:
        return compile(file.read(), path, "exec", dont_inherit=True)


own_builtins = {**vars(builtins), "__import__": import_module}
process = load("process")
before_preload, prepare, main, ended = process.add_packages, process.prepare, process.main, process.ended


def warm_up() -> None:
    load("warmup").warm_up()


if __name__ == "__main__":
    sys.exit(main())
