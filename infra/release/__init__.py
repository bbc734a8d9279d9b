"""What a release is made of and how it is made: versions, changelog, artifacts, dry run.

Read `settings` first, then `versions`, `changelog`, `cutting`, `artifacts`, `dry_run`. docs/guides/release.md
is the page for who makes a release.
"""
