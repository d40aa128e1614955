"""`truestep lint`: the failures that the syntax of files shows, without running them. Needs no torch.

- `baseline`: findings that a file lists, which are not shown again.
- `cache`: findings of files that have not changed.
- `cell_sources`: the sources of cells in the JSON of a notebook.
- `checking`: many files, with the cache and the options of the user.
- `discovery`: the files below folders, without those that `.gitignore` or the configuration leaves out.
- `engine`: all rules on one file or on many.
- `fixing`: fixes of the findings, made in the files or shown.
- `notebook_fixes`: fixes in the cells of notebooks.
- `notebooks`: the code of a notebook as one text, and the cell of each line.
- `reading`: the text of a file, or the reason that it cannot be checked.
- `recorded`: suspicions compared with the record of a run.
- `results`: findings and problems of files.
- `texts`: the results as text, JSON, SARIF and annotations of GitHub.
- `watching`: changes of the files, one round for each.
"""

from truestep.lint.engine import lint
from truestep.lint.results import Problem, Results

__all__ = ["Problem", "Results", "lint"]
