"""The package `kubernetes` of Pulumi, carried out by server-side apply on the real API server."""
