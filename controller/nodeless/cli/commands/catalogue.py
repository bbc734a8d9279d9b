"""`nodeless catalogue` saves what a region sells, for plans without AWS."""

import asyncio
import time
from datetime import UTC, datetime
from typing import Annotated

import typer

from nodeless.cli.commands.terms import refuse

catalogues = typer.Typer()


@catalogues.command(rich_help_panel="Plans")
def catalogue(
    region: Annotated[
        str, typer.Option(help="AWS region; without it, as boto3 finds it", envvar="AWS_REGION")
    ] = "",
    spot: Annotated[bool, typer.Option(help="With the spot prices of this moment")] = True,
) -> None:
    """Save the instance types and prices of a region, for `nodeless plan --catalogue FILE`. JSON on stdout.

    Needs AWS credentials with ec2:DescribeInstanceTypes, ec2:DescribeInstanceTypeOfferings,
    ec2:DescribeSpotPriceHistory and pricing:GetProducts.
    """
    # Imported here: commands on files need no AWS.
    from nodeless.cloudprovider import CloudError  # noqa: PLC0415
    from nodeless.cloudprovider.aws.catalogue_fetch import fetch_catalogue  # noqa: PLC0415
    from nodeless.cloudprovider.aws.catalogue_file import CatalogueFile, write_catalogue  # noqa: PLC0415
    from nodeless.cloudprovider.aws.session import AwsSession  # noqa: PLC0415
    from nodeless.operator import logs  # noqa: PLC0415
    from nodeless.operator.logs import logger  # noqa: PLC0415

    async def fetched() -> CatalogueFile:
        session = AwsSession(region)
        try:
            today = datetime.now(UTC).date().isoformat()
            return await fetch_catalogue(session, time.time, logger("aws"), today, spot=spot)
        finally:
            await session.close()

    logs.only_errors()
    try:
        typer.echo(write_catalogue(asyncio.run(fetched())), nl=False)
    except CloudError as error:
        refuse(str(error))
