"""`python -m localenv.aws --port N --region R`: the local AWS as a process of its own.

moto reads its switches when it is imported, so they are set here before anything imports it.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from pathlib import Path


def _configure(images: Path) -> None:
    from localenv.aws.images import catalog  # noqa: PLC0415 - imports nothing of moto

    images.write_text(json.dumps(catalog()[0]))
    os.environ.update(
        {
            "MOTO_AMIS_PATH": str(images),
            "MOTO_IAM_LOAD_MANAGED_POLICIES": "true",
            "MOTO_EC2_ENABLE_INSTANCE_TYPE_VALIDATION": "true",
            "MOTO_ENABLE_AMI_VALIDATION": "true",
        }
    )
    # The server's own clients speak to moto inside the process, whatever the caller's environment says.
    for name in ("AWS_ENDPOINT_URL", "AWS_PROFILE", "AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        os.environ.pop(name, None)


def main() -> None:
    """Parse the arguments, configure moto, serve."""
    parser = argparse.ArgumentParser(prog="python -m localenv.aws", description="AWS on this machine")
    parser.add_argument("--port", type=int, required=True, help="port on 127.0.0.1")
    parser.add_argument("--region", default="us-east-1", help="region of calls that name none")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="nodeless-aws-") as directory:
        _configure(Path(directory) / "images.json")
        from localenv.aws.server import serve  # noqa: PLC0415 - moto reads the environment set above

        serve(arguments.port, arguments.region)


if __name__ == "__main__":
    main()
