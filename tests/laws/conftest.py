"""The programs are run by the tests, not imported by the collector."""

collect_ignore = ["scripts"]
