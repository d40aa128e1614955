"""The shell around the commands.

- `colors`: the option `--color`, which every command has.
- `completion`: values that the shell completes, such as ids of rules.
- `progress`: the line of each stage, with the time passed.
- `rule_options`: the options that choose rules.
"""
