"""`nodeless catalog` saves what a region sells, for plans without AWS."""

import asyncio
import time
from datetime import UTC, datetime
from typing import Annotated

import typer

from nodeless.cli.commands.terms import refuse
from nodeless.cli.progress import working

catalogs = typer.Typer()


@catalogs.command(rich_help_panel="Plans")
def catalog(
    region: Annotated[
        str, typer.Option(help="AWS region. If not set, boto3 determines it.", envvar="AWS_REGION")
    ] = "",
    spot: Annotated[bool, typer.Option(help="Include the current spot prices.")] = True,
) -> None:
    """Save the instance types and prices of a region as JSON on stdout, for `nodeless plan --catalog FILE`.

    Needs AWS credentials with ec2:DescribeInstanceTypes, ec2:DescribeInstanceTypeOfferings,
    ec2:DescribeSpotPriceHistory and pricing:GetProducts.
    """
    # Imported here: commands on files need no AWS.
    from nodeless.cloudprovider import CloudError  # noqa: PLC0415
    from nodeless.cloudprovider.aws.catalog_fetch import fetch_catalog  # noqa: PLC0415
    from nodeless.cloudprovider.aws.catalog_file import CatalogFile, write_catalog  # noqa: PLC0415
    from nodeless.cloudprovider.aws.session import AwsSession  # noqa: PLC0415
    from nodeless.operator import logs  # noqa: PLC0415
    from nodeless.operator.logs import logger  # noqa: PLC0415

    async def fetched() -> CatalogFile:
        session = AwsSession(region)
        try:
            today = datetime.now(UTC).date().isoformat()
            return await fetch_catalog(session, time.time, logger("aws"), today, spot=spot)
        finally:
            await session.close()

    logs.only_errors()
    try:
        with working("asking AWS for types and prices"):
            found = asyncio.run(fetched())
        typer.echo(write_catalog(found), nl=False)
    except CloudError as error:
        refuse(str(error))
