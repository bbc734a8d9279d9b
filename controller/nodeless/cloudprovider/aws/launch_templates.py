"""Launch templates in EC2: made when first needed, known by name, deleted when long unused.

A template's name is a digest of its content, so there is nothing to compare or update.
"""

import asyncio
from collections.abc import Mapping
from typing import Any

from nodeless.cloudprovider import CloudError
from nodeless.cloudprovider.aws.caching import Cache, Clock
from nodeless.cloudprovider.aws.errors import AwsCallRefused
from nodeless.cloudprovider.aws.session import AwsSession
from nodeless.launch.templates import LaunchTemplate
from nodeless.model.labels import EC2_NODE_CLASS_NAME, MANAGED_TEMPLATE_TAG

MISSING_CODES = frozenset({"InvalidLaunchTemplateName.NotFoundException", "InvalidLaunchTemplateId.NotFound"})
_EXISTS = "InvalidLaunchTemplateName.AlreadyExistsException"
_FOREVER = float("inf")
_NO_TAGS: Mapping[str, str] = {}
#: Seconds without use after which a template of this cluster is deleted.
UNUSED_SECONDS = 1800.0


class LaunchTemplates:
    """Knows which templates exist and when each was last used."""

    def __init__(self, session: AwsSession, clock: Clock, cluster: str) -> None:
        self._session = session
        self._clock = clock
        self._cluster = cluster
        self._existing: Cache[str] = Cache(clock, _FOREVER, _FOREVER)
        self._used: dict[str, float] = {}

    async def ensure(self, template: LaunchTemplate) -> None:
        """Have the template exist in EC2; no call when it is known to."""
        self._used[template.name] = self._clock()
        await self._existing.get(template.name, lambda: self._create(template.request))

    def invalidate(self, name: str) -> None:
        """Forget a template that EC2 says is not there."""
        self._existing.forget(name)

    async def delete_unused(self) -> int:
        """Delete this cluster's templates that nothing has used for long; their number.

        A template found for the first time counts as just used.
        """
        now = self._clock()
        unused = [
            name for name in await self.names() if now - self._used.setdefault(name, now) >= UNUSED_SECONDS
        ]
        return await self._delete(unused)

    async def delete_all(self) -> int:
        """Delete all of this cluster's templates; their number."""
        return await self._delete(await self.names())

    async def delete_of(self, node_class: str) -> int:
        """Delete this cluster's templates of an EC2NodeClass; their number."""
        return await self._delete(await self.names({EC2_NODE_CLASS_NAME: node_class}))

    async def _create(self, request: Mapping[str, Any]) -> str:
        try:
            await self._session.call("ec2", "create_launch_template", request)
        except AwsCallRefused as error:
            if error.code != _EXISTS:
                raise
        return str(request["LaunchTemplateName"])

    async def names(self, more: Mapping[str, str] = _NO_TAGS) -> list[str]:
        """Names of all of this cluster's templates that bear these tags as well."""
        tags = {MANAGED_TEMPLATE_TAG: self._cluster, **more}
        request = {
            "Filters": [{"Name": f"tag:{key}", "Values": [value]} for key, value in tags.items()],
            "MaxResults": 200,
        }
        found = await self._session.pages("ec2", "describe_launch_templates", request, "LaunchTemplates")
        return sorted(str(record["LaunchTemplateName"]) for record in found)

    async def _delete(self, names: list[str]) -> int:
        for name in names:
            self._existing.forget(name)
            self._used.pop(name, None)
        results = await asyncio.gather(*(self._delete_one(name) for name in names), return_exceptions=True)
        errors = [result for result in results if isinstance(result, BaseException)]
        for error in errors:
            if not isinstance(error, CloudError):
                raise error
        if errors:
            raise errors[0]
        return len(names)

    async def _delete_one(self, name: str) -> None:
        try:
            await self._session.call("ec2", "delete_launch_template", {"LaunchTemplateName": name})
        except AwsCallRefused as error:
            if error.code not in MISSING_CODES:
                raise
