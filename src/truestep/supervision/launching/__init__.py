"""Running a program in this process as python does.

launch           runs a program, as `truestep run` does, and reports how it ended
program          finds and checks the script, folder, archive or module to run
first_import     callback after the program's own import of torch
shadowed         modules that the program's own modules replace
process_exit     SIGTERM, `os._exit` and forks
uncaught         prints an uncaught exception as python does
watched_program  the session of a launched program: start, announcements, report
"""
