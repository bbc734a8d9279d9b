"""Programs that make environments: on AWS (`__main__.py`), and the same on one machine (`local/`)."""
