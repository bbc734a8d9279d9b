"""Commands for people and pipelines: `plan`, `why`, `snapshot`, `replay`, `catalog`.

Data goes to stdout, remarks to stderr. Exit code 0: all is well; 1: the answer is no; 2: wrong use or
input that cannot be read.
"""
