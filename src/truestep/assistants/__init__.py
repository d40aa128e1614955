"""For coding assistants: a server of the Model Context Protocol, and skills to install into a project.

server    the tools run, check, explain, prove and tune
bounded   a command of TrueStep in a child process, with a time limit
skills    installation of `skills/`, one folder with a SKILL.md for each
"""
