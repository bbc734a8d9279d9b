// terraform-provider-aws for the local AWS: the resources and data sources that the module in terraform/ and its
// examples use, with the schemas and refusals of hashicorp/aws 6, carried out by the AWS SDK on AWS_ENDPOINT_URL.
//
// The real provider compiles for an hour; tests of the module cannot wait for it. What this one lacks of it is
// refused rather than ignored: an attribute that is not in its schemas is an error of `tofu validate`. Nothing
// here waits for AWS to become consistent, as the local one is at once.
package main

import (
	"flag"

	"github.com/hashicorp/terraform-plugin-sdk/v2/plugin"
)

func main() {
	debug := flag.Bool("debug", false, "serve a debugger")
	flag.Parse()
	plugin.Serve(&plugin.ServeOpts{
		ProviderFunc: newProvider,
		ProviderAddr: "registry.opentofu.org/hashicorp/aws",
		Debug:        *debug,
	})
}
