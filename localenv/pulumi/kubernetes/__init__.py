"""The package `kubernetes` of Pulumi, carried out on the real API server."""
