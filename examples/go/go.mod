module nodeless-go

go 1.25

require (
	github.com/nodeless/pulumi-nodeless/sdk/go v0.1.0
	github.com/pulumi/pulumi/sdk/v3 v3.256.0
)

// Made by `pulumi package add`.
replace github.com/nodeless/pulumi-nodeless/sdk/go => ./sdks/nodeless-nodeless
