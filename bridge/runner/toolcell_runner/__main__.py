"""Starts the runner. oci/template/fork.py also loads this file, and calls warm_up, prepare, main and ended itself.

Code that runs here must not see, shadow or break the runner. So its modules are not in sys.modules, and nothing finds
them through sys.path: their import statements call import_module, by way of builtins of their own.
"""
import builtins
import sys
from _frozen_importlib_external import SourceFileLoader  # to import importlib.machinery takes longer

FOLDER = __file__.rpartition("/")[0] + "/"
Module = type(sys)
python_import = builtins.__import__
package = Module("toolcell_runner")


def import_module(name, globals=None, locals=None, fromlist=(), level=0):
    """Stands in for __import__ in the runner's modules."""
    if not level:
        return python_import(name, globals, locals, fromlist)
    if name:
        return load(name)
    for each in fromlist:
        load(each)
    return package


def load(name):
    """Returns a module of the runner."""
    module = package.__dict__.get(name)
    if module is None:
        path = f"{FOLDER}{name}.py"
        code = SourceFileLoader(name, path).get_code(name)
        # Pickle and tracebacks name a class by its module: users meet ours as mcp.runtime.
        module = Module("mcp.runtime")
        module.__dict__.update(__file__=path, __builtins__=own_builtins)
        setattr(package, name, module)
        exec(code, module.__dict__)
    return module


own_builtins = {**vars(builtins), "__import__": import_module}
process = load("process")
prepare, main, ended = process.prepare, process.main, process.ended


def warm_up():
    """Imports what only some runs need as well, and goes the way of a run."""
    for name in process.LATE_MODULES:
        load(name)
    process.warm_up()


if __name__ == "__main__":
    sys.exit(main())
