# SPDX-License-Identifier: Apache-2.0

"""Modules that are waited for, and their loaders."""

import unittest

from .helper import Case


class Imports(Case):
    def test_one_loader_of_several_modules(self):
        out, _ = self.run_program("""
            import importlib.abc, importlib.util, sys
            from lockstep_scope import imports
            class Loader(importlib.abc.Loader):
                def create_module(self, spec): return None
                def exec_module(self, module): print("runs", module.__name__)
            loader = Loader()
            class Finder(importlib.abc.MetaPathFinder):
                def find_spec(self, name, path, target=None):
                    if name.endswith("_module"):
                        return importlib.util.spec_from_loader(name, loader)
            sys.meta_path.insert(0, Finder())
            for name in ("first_module", "second_module"):
                imports.when_imported(name, lambda name=name: print("ran", name))
            for name in ("first_module", "second_module", "first_module"):
                importlib.util.find_spec(name)
            import second_module, first_module
            assert vars(loader) == {}, vars(loader)
        """, under=None)
        self.assertEqual(out.split("\n"), [
            "runs second_module", "ran second_module", "runs first_module", "ran first_module", "",
        ])  # fmt: skip


if __name__ == "__main__":
    unittest.main()
