"""The report on a run, or on several beside each other, as one HTML file. Needs Jinja2, and no torch.

- `write_page`: the file, from the templates `page.html` and `parts.html`, a style and a script.
- `experiment_page`: the page of an experiment, from the template `experiment.html`.
- `run_page`: the contents of the page for one run, as plain values.
- `findings`: findings and post-mortems with their lines of code, and the manual pages of their rules.
- `code`: lines of a user's file with the kinds of their tokens, and excerpts with marked lines.
- `annotated`: the annotated loop: the source with the actions of each line in the run.
- `line_times`: times by line of a profile.
- `lines`: the actions of a line, from the facts of the ledger and the counts of the timeline.
- `duties`: the purpose of each operation of a training loop, and the failures if it is misplaced.
- `score`: the order of operations in the first steps and in a typical one, as lanes.
- `pictures`: curves, schedules, time and memory, shaded tables of the layers, alerts.
- `compared`: several runs beside each other.
"""
