"""The commands, one module each: its docstring is its help, `arguments` and `run` are the rest."""
