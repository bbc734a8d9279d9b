"""The schemas of documents as files of the docs, and the page that lists them."""

import json

from nodeless.cli.commands.output import API_VERSION
from nodeless.cli.document_schemas import document_schema, kinds
from nodeless.cli.reference_text import page, table

_INTRODUCTION = f"""With `-o json` or `-o yaml` a command writes one document. It begins with `apiVersion: {API_VERSION}` and its
`kind`. Each kind has a schema (JSON Schema 2020-12) here, and `nodeless schema KIND` prints it.

Within `v1`, fields may be added to a document. No field is removed, changes its type, or becomes optional. So ignore fields that
you do not know, and expect further values where the schema says `string`.

Fields that the schema does not list as `required` are left out if they are empty."""


def schema_pages() -> dict[str, str]:
    """The page and the files by their names."""
    written = {f"schemas/{kind}.json": json.dumps(document_schema(kind), indent=2) + "\n" for kind in kinds()}
    rows = [
        (f"[`{kind}`](schemas/{kind}.json)", str(document_schema(kind)["description"])) for kind in kinds()
    ]
    return {"documents.md": page("Documents", _INTRODUCTION, table(("Kind", "Meaning"), rows)), **written}
