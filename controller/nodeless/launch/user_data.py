"""What an instance runs at its first boot, in the dialect of its image's family.

| family | dialect | module |
|---|---|---|
| AL2, Ubuntu | MIME archive, `bootstrap.sh` last | `al2` |
| AL2023 | MIME archive, NodeConfig last | `al2023` |
| Bottlerocket | TOML | `bottlerocket` |
| Windows2019, Windows2022, Windows2025 | PowerShell | `windows` |
| Custom | the node class's own text, untouched | here |
"""

import base64
from dataclasses import replace

from nodeless.launch import al2, al2023, bottlerocket, families, windows
from nodeless.launch.al2023 import YamlError
from nodeless.launch.bottlerocket import TomlError
from nodeless.launch.families import FAMILIES, family_of
from nodeless.launch.kubelet_arguments import ArgumentError, Bootstrap
from nodeless.launch.mime import MimeError
from nodeless.launch.shell import ShellError
from nodeless.launch.windows import PowerShellError

#: EC2's limit of the decoded text, in bytes, and the size from which on little is left of it (Karpenter v1).
MAX_BYTES = 16384
NEARLY_MAX_BYTES = MAX_BYTES * 9 // 10


class UserDataError(ValueError):
    """User data that cannot be made; the text says why and what to do."""


class UserDataTooLongError(UserDataError):
    """It can be made, and is longer than EC2 takes."""


def user_data(family: str, bootstrap: Bootstrap) -> str:
    """The user data of a family, as plain text.

    Raises:
        UserDataTooLongError: The whole is too long.
        UserDataError: The custom text cannot be merged, or the family is unknown.
    """
    if len(bootstrap.custom) > 4 * MAX_BYTES:  # whatever becomes of it; reading it would only take time
        raise UserDataTooLongError(
            f"user data has {len(bootstrap.custom)} characters, EC2 takes {MAX_BYTES} bytes; "
            "hint: shorten spec.userData"
        )
    text = _text(family, bootstrap)
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        raise UserDataError(f"user data is no text: {error.reason}; hint: write it in UTF-8") from None
    if size > MAX_BYTES:
        raise UserDataTooLongError(
            f"user data has {size} bytes, EC2 takes {MAX_BYTES}; hint: shorten spec.userData"
        )
    return text


def encode_base64(text: str) -> str:
    """Base64, as a launch template holds it (boto3 encodes it for RunInstances only)."""
    return base64.b64encode(text.encode()).decode()


def decoded_size(encoded_text: str) -> int:
    """Bytes of the text that a launch template holds in base64."""
    return len(base64.b64decode(encoded_text))


def _text(family: str, bootstrap: Bootstrap) -> str:
    try:
        match family:
            case "AL2" | "Ubuntu":
                return al2.user_data(bootstrap, ubuntu=family == "Ubuntu")
            case "AL2023":
                return al2023.user_data(bootstrap)
            case "Bottlerocket":
                return bottlerocket.user_data(bootstrap)
            case families.CUSTOM:
                return bootstrap.custom
            case _ if family_of(family).windows_build:
                return windows.user_data(replace(bootstrap, eni_limited_pod_density=False))
    except (ArgumentError, MimeError, PowerShellError, ShellError, TomlError, YamlError) as error:
        raise UserDataError(str(error)) from error
    except UnicodeEncodeError as error:
        raise UserDataError(f"user data is no text: {error.reason}; hint: write it in UTF-8") from None
    raise UserDataError(f"amiFamily {family!r} is not known; hint: use one of {', '.join(FAMILIES)}")
