"""Manifests in the shapes that users have, with what must be read of each; `run.py` reads any folder so."""
