// terraform-provider-helm for tests: the schema of helm_release of hashicorp/helm 3, to plan the example in
// terraform/examples with. It installs nothing; what a plan says is rendered and installed by the real Helm.
package main

import (
	"context"
	"log"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	providerschema "github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/booldefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/int64default"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

func main() {
	address := "registry.opentofu.org/hashicorp/helm"
	made := func() provider.Provider { return helmProvider{} }
	if err := providerserver.Serve(context.Background(), made, providerserver.ServeOpts{Address: address}); err != nil {
		log.Fatal(err)
	}
}

type helmProvider struct{}

func (helmProvider) Metadata(_ context.Context, _ provider.MetadataRequest, response *provider.MetadataResponse) {
	response.TypeName = "helm"
}

func (helmProvider) Schema(_ context.Context, _ provider.SchemaRequest, response *provider.SchemaResponse) {
	text := providerschema.StringAttribute{Optional: true}
	response.Schema = providerschema.Schema{Attributes: map[string]providerschema.Attribute{
		"kubernetes": providerschema.SingleNestedAttribute{
			Optional: true,
			Attributes: map[string]providerschema.Attribute{
				"cluster_ca_certificate": text,
				"config_context":         text,
				"config_path":            text,
				"host":                   text,
				"token":                  text,
				"exec": providerschema.SingleNestedAttribute{
					Optional: true,
					Attributes: map[string]providerschema.Attribute{
						"api_version": providerschema.StringAttribute{Required: true},
						"args":        providerschema.ListAttribute{Optional: true, ElementType: types.StringType},
						"command":     providerschema.StringAttribute{Required: true},
						"env":         providerschema.MapAttribute{Optional: true, ElementType: types.StringType},
					},
				},
			},
		},
	}}
}

func (helmProvider) Configure(context.Context, provider.ConfigureRequest, *provider.ConfigureResponse) {
}

func (helmProvider) DataSources(context.Context) []func() datasource.DataSource { return nil }

func (helmProvider) Resources(context.Context) []func() resource.Resource {
	return []func() resource.Resource{func() resource.Resource { return release{} }}
}

type release struct{}

func (release) Metadata(_ context.Context, _ resource.MetadataRequest, response *resource.MetadataResponse) {
	response.TypeName = "helm_release"
}

func (release) Schema(_ context.Context, _ resource.SchemaRequest, response *resource.SchemaResponse) {
	flag := func(standard bool) schema.Attribute {
		return schema.BoolAttribute{Optional: true, Computed: true, Default: booldefault.StaticBool(standard)}
	}
	replaced := []planmodifier.String{stringplanmodifier.RequiresReplace()}
	response.Schema = schema.Schema{Version: 2, Attributes: map[string]schema.Attribute{
		"atomic":           flag(false),
		"chart":            schema.StringAttribute{Required: true},
		"cleanup_on_fail":  flag(false),
		"create_namespace": flag(false),
		"id":               schema.StringAttribute{Computed: true},
		"name": schema.StringAttribute{
			Required: true, PlanModifiers: replaced, Validators: []validator.String{releaseName{}},
		},
		"namespace": schema.StringAttribute{
			Optional: true, Computed: true, Default: stringdefault.StaticString("default"), PlanModifiers: replaced,
		},
		"repository":      schema.StringAttribute{Optional: true},
		"skip_crds":       flag(false),
		"status":          schema.StringAttribute{Computed: true},
		"take_ownership":  flag(false),
		"timeout":         schema.Int64Attribute{Optional: true, Computed: true, Default: int64default.StaticInt64(300)},
		"upgrade_install": flag(false),
		"values":          schema.ListAttribute{Optional: true, ElementType: types.StringType},
		"version":         schema.StringAttribute{Optional: true, Computed: true},
		"wait":            flag(true),
	}}
}

const refusal = "this provider plans alone"

func (release) Create(_ context.Context, _ resource.CreateRequest, response *resource.CreateResponse) {
	response.Diagnostics.AddError(refusal, "hint: apply with hashicorp/helm, or render the planned values with Helm")
}

func (release) Read(_ context.Context, _ resource.ReadRequest, response *resource.ReadResponse) {
	response.Diagnostics.AddError(refusal, "there is no release to read")
}

func (release) Update(_ context.Context, _ resource.UpdateRequest, response *resource.UpdateResponse) {
	response.Diagnostics.AddError(refusal, "there is no release to update")
}

func (release) Delete(_ context.Context, _ resource.DeleteRequest, response *resource.DeleteResponse) {
	response.Diagnostics.AddError(refusal, "there is no release to delete")
}

// releaseName refuses what Helm does.
type releaseName struct{}

func (releaseName) Description(context.Context) string         { return "1 to 53 characters" }
func (releaseName) MarkdownDescription(context.Context) string { return "1 to 53 characters" }

func (releaseName) ValidateString(_ context.Context, request validator.StringRequest, response *validator.StringResponse) {
	name := request.ConfigValue
	if !name.IsNull() && !name.IsUnknown() && (len(name.ValueString()) < 1 || len(name.ValueString()) > 53) {
		response.Diagnostics.AddAttributeError(request.Path, "invalid release name", "it has 1 to 53 characters")
	}
}
