"""What the command line prints on real terminals of 80, 120 and 200 columns, held by files.

`python -m tests.terminal` writes the files anew; what changed is then read in the diff.
"""
