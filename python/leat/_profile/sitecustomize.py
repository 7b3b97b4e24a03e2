"""Stands before the user's own ``sitecustomize`` on the path, and runs it too."""

import importlib.machinery
import importlib.util
import os
import sys

_here = os.path.dirname(os.path.abspath(__file__))
_path = [entry for entry in sys.path if os.path.abspath(entry or ".") != _here]
_own = importlib.machinery.PathFinder.find_spec("sitecustomize", _path)
if _own is not None and _own.loader is not None:
    _own.loader.exec_module(importlib.util.module_from_spec(_own))

_spec = os.environ.get("LEAT_PROFILE")
if _spec:
    _hook = importlib.util.spec_from_file_location(
        "_leat_profile_hook", os.path.join(_here, "hook.py")
    )
    assert _hook is not None and _hook.loader is not None
    _module = importlib.util.module_from_spec(_hook)
    sys.modules["_leat_profile_hook"] = _module
    _hook.loader.exec_module(_module)
    _module.install(_spec)
