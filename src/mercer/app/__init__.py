"""Mercer for people who do not write Python: their files, projects, reports and the command line."""
