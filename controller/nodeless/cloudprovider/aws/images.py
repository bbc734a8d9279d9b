"""Images of a node class: those that its selector matches, else the default ones by SSM parameter."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any

import structlog

from nodeless.cloudprovider import CloudUnavailable, NodeClassUnresolved
from nodeless.cloudprovider.aws.caching import Cache, Clock
from nodeless.cloudprovider.aws.errors import AwsCallRefused, shorten_text
from nodeless.cloudprovider.aws.image_parameters import ImageParameter, parameters_for
from nodeless.cloudprovider.aws.selectors import IMAGES_NOT_FOUND, describe, filters_of, nothing_selected
from nodeless.cloudprovider.aws.session import AwsSession, invoke
from nodeless.launch.resolved import Image
from nodeless.model.labels import ARCH, WELL_KNOWN, canonical_key
from nodeless.model.pools import EC2_NODE_CLASS, NodeClass, SelectorTerm
from nodeless.model.requirements import Requirements

#: Seconds: selected images change when their owner registers one, default images every few weeks.
_SELECTED_FRESH, _SELECTED_USABLE = 60.0, 600.0
_DEFAULT_FRESH, _DEFAULT_USABLE = 3600.0, 12 * 3600.0
#: Beginnings of `PlatformDetails` (https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/billing-info-fields.html).
_LICENSED = (
    "Red Hat Enterprise",
    "SUSE",
    "Ubuntu Pro",
    "SQL Server",
    "Linux with SQL",
    "Windows BYOL",
    "Windows with SQL",
)
_ARCHITECTURES = {"x86_64": "amd64", "arm64": "arm64"}


class Images:
    """Finds images, in order of preference."""

    def __init__(self, session: AwsSession, clock: Clock, log: Any = None) -> None:
        self._session = session
        self._log = log if log is not None else structlog.get_logger("aws")
        #: SSM parameters that were logged as missing, by the key of the node class that names them.
        self._missing: dict[str, list[str]] = {}
        self._clock = clock
        self._selected: Cache[tuple[Image, ...]] = Cache(clock, _SELECTED_FRESH, _SELECTED_USABLE)
        self._default: Cache[tuple[Image, ...]] = Cache(clock, _DEFAULT_FRESH, _DEFAULT_USABLE)

    async def select(
        self, node_class: NodeClass, version: str, *, refresh: bool = False
    ) -> tuple[Image, ...]:
        """The images for a Kubernetes version (`1.29`).

        Raises:
            nodeless.cloudprovider.NodeClassUnresolved: There is none.
        """
        if node_class.images:
            get = self._selected.refresh if refresh else self._selected.get
            return await get(node_class.images, lambda: self._fetch_selected(node_class))
        key = _default_key(node_class, version)
        return await self._default.get(key, lambda: self._fetch_default(node_class, key[0], version))

    def keep(self, seconds: float) -> None:
        """Let answers on selected images serve for so long, on default images an hour at least."""
        self._selected.keep(seconds)
        self._default.keep(max(seconds, _DEFAULT_FRESH))

    def expire(self, node_class: NodeClass, version: str) -> None:
        """Ask AWS again: an image that was chosen is not there."""
        self._selected.expire(node_class.images)
        self._default.expire(_default_key(node_class, version))

    async def _fetch_default(self, node_class: NodeClass, family: str, version: str) -> tuple[Image, ...]:
        release = node_class.image_release
        parameters = parameters_for(family, version, release)
        if not parameters:
            raise NodeClassUnresolved(
                node_class.reference,
                "amiSelector",
                f"amiFamily {family} has no default images",
                "set spec.amiSelector",
                IMAGES_NOT_FOUND,
            )
        images = await self._session.run(lambda: self._read(parameters))
        if not images:
            raise NodeClassUnresolved(
                node_class.reference,
                "amiFamily",
                f"AWS publishes no {family} images {release or '(latest)'} for Kubernetes {version}",
                "choose another spec.amiFamily, or select your own images with "
                f"spec.amiSelector{'Terms' if node_class.reference.kind == EC2_NODE_CLASS else ''}",
                IMAGES_NOT_FOUND,
            )
        return images

    def _read(self, parameters: Iterable[ImageParameter]) -> tuple[Image, ...]:
        images = []
        with self._session.borrow_client("ssm") as client:
            for parameter in parameters:
                try:
                    answer = invoke(client, "get_parameter", {"Name": parameter.name})
                except AwsCallRefused as error:
                    if error.code != "ParameterNotFound":
                        raise
                    continue
                value = str(answer["Parameter"]["Value"])
                if not value.startswith("ami-"):
                    text = (
                        f"ssm:GetParameter of {parameter.name}: {shorten_text(value, 60)!r} is not an image"
                    )
                    raise CloudUnavailable("ssm", text, "nodeless asks again")
                images += [Image(value, kind, parameter.name) for kind in parameter.kinds]
        return in_order(images)

    async def _fetch_selected(self, node_class: NodeClass) -> tuple[Image, ...]:
        found: dict[str, Image] = {}
        useless: list[str] = []
        missing: list[str] = []
        for term in node_class.images:
            named, gone = await self._session.run(partial(self._with_ids, term))
            missing += gone
            if gone and not named.ids:
                # Without an id the term would select by what else it says, or all images.
                continue
            request = image_request(named)
            for record in await self._session.pages("ec2", "describe_images", request, "Images"):
                image = read_image(record, self._clock())
                if image is not None:
                    found[image.id] = image
                else:
                    useless.append(_why_useless(record))
        if not found and useless:
            raise NodeClassUnresolved(
                node_class.reference,
                "amiSelector",
                f"no image of {describe(node_class.images)} can be used: {', '.join(useless[:3])}",
                "select images of architecture x86_64 or arm64 in state available",
                IMAGES_NOT_FOUND,
            )
        if not found and missing:
            raise NodeClassUnresolved(
                node_class.reference,
                "amiSelectorTerms",
                f"there is no SSM parameter {', '.join(missing)}",
                "correct ssmParameter in spec.amiSelectorTerms",
                IMAGES_NOT_FOUND,
            )
        if not found:
            raise nothing_selected(
                node_class, "amiSelector", node_class.images, "images", self._session.region
            )
        self._report_missing(node_class, missing)
        return in_order(found.values())

    def _report_missing(self, node_class: NodeClass, parameters: list[str]) -> None:
        """Log SSM parameters that do not exist, once for as long as they are the same."""
        if parameters and self._missing.get(node_class.key) != parameters:
            names = ", ".join(parameters)
            self._log.warning(
                f"{node_class.reference}: there is no SSM parameter {names}; images of other terms are used; "
                "hint: correct ssmParameter in spec.amiSelectorTerms"
            )
        self._missing[node_class.key] = parameters

    def _with_ids(self, term: SelectorTerm) -> tuple[SelectorTerm, list[str]]:
        """The term with the ids that its SSM parameters hold, and those of these that do not exist."""
        if not term.parameters:
            return term, []
        ids, missing = [], []
        with self._session.borrow_client("ssm") as client:
            for name in term.parameters:
                try:
                    answer = invoke(client, "get_parameter", {"Name": name})
                except AwsCallRefused as error:
                    if error.code != "ParameterNotFound":
                        raise
                    missing.append(name)
                    continue
                ids.append(answer["Parameter"]["Value"])
        return replace(term, ids=(*term.ids, *ids), parameters=()), missing


def _default_key(node_class: NodeClass, version: str) -> tuple[str, str, str]:
    """Family, Kubernetes version and release of the default images."""
    return node_class.image_family or node_class.ami_family, version, node_class.image_release


def image_request(term: SelectorTerm) -> dict[str, Any]:
    """DescribeImages' request for a term without parameters; by default of this account and of Amazon."""
    filters = filters_of(term, id_filter="image-id", name_filter="name")
    owners = list(term.owners) or ([] if term.ids else ["self", "amazon"])
    request: dict[str, Any] = {"Owners": owners, "Filters": filters, "IncludeDeprecated": True}
    return {name: value for name, value in request.items() if value}


def _why_useless(record: Mapping[str, Any]) -> str:
    architecture = record.get("Architecture", "of no architecture")
    return f"{record['ImageId']} is {architecture}, {record.get('State', '')}"


def read_image(record: Mapping[str, Any], now: float = 0.0) -> Image | None:
    """An image that DescribeImages tells of; its tags with well-known keys are requirements on the type."""
    architecture = _ARCHITECTURES.get(record.get("Architecture", ""))
    if architecture is None or record.get("State", "available") != "available":
        return None
    tags = {str(tag["Key"]): str(tag["Value"]) for tag in record.get("Tags", ())}
    wanted = {key: value for key, value in tags.items() if canonical_key(key) in WELL_KNOWN}
    return Image(
        record["ImageId"],
        Requirements.from_labels({**wanted, ARCH: architecture}),
        str(record.get("Name", "")),
        str(record.get("CreationDate", "")),
        deprecated=_has_passed(record.get("DeprecationTime"), now),
        platform=_license_of(str(record.get("PlatformDetails", ""))),
    )


def _license_of(platform: str) -> str:
    """What EC2 says an image is billed as, where that is another price than its family's.

    "Windows" is left out, since its family says so, and "Red Hat BYOL Linux", which costs what Linux does.
    """
    return platform if platform.startswith(_LICENSED) else ""


def _has_passed(text: str | None, now: float) -> bool:
    if not text:
        return False
    try:
        return datetime.fromisoformat(text).timestamp() <= now
    except ValueError:
        return False


def in_order(images: Iterable[Image]) -> tuple[Image, ...]:
    """Newest first, then by name backwards, those last that their owners advise against.

    Of images with equal requirements only the first is of use.
    """
    newest = sorted(
        images, key=lambda image: (not image.deprecated, image.created, image.name, image.id), reverse=True
    )
    chosen: dict[Requirements, Image] = {}
    for image in newest:
        chosen.setdefault(image.requirements, image)
    return tuple(chosen.values())
