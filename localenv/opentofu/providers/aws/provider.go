package main

import (
	"context"
	"errors"
	"maps"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go"
	"github.com/hashicorp/terraform-plugin-sdk/v2/diag"
	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/schema"
)

// clients are what every operation gets: one client a service, the provider's region and its default tags.
type clients struct {
	region      string
	defaultTags map[string]string
	config      aws.Config
	iam         *iam.Client
	sts         *sts.Client
}

func (c *clients) in(region string) aws.Config {
	own := c.config.Copy()
	if region != "" {
		own.Region = region
	}
	return own
}

func (c *clients) sqs(d *schema.ResourceData) *sqs.Client {
	return sqs.NewFromConfig(c.in(d.Get("region").(string)))
}

func (c *clients) events(d *schema.ResourceData) *eventbridge.Client {
	return eventbridge.NewFromConfig(c.in(d.Get("region").(string)))
}

func (c *clients) eks(d *schema.ResourceData) *eks.Client {
	return eks.NewFromConfig(c.in(d.Get("region").(string)))
}

func newProvider() *schema.Provider {
	return &schema.Provider{
		Schema: map[string]*schema.Schema{
			"region":     {Type: schema.TypeString, Optional: true},
			"access_key": {Type: schema.TypeString, Optional: true},
			"secret_key": {Type: schema.TypeString, Optional: true},
			"default_tags": {
				Type: schema.TypeList, Optional: true, MaxItems: 1,
				Elem: &schema.Resource{Schema: map[string]*schema.Schema{"tags": tagsSchema()}},
			},
		},
		ResourcesMap: map[string]*schema.Resource{
			"aws_cloudwatch_event_rule":        eventRule(),
			"aws_cloudwatch_event_target":      eventTarget(),
			"aws_eks_access_entry":             accessEntry(),
			"aws_eks_addon":                    addon(),
			"aws_eks_fargate_profile":          fargateProfile(),
			"aws_eks_pod_identity_association": podIdentityAssociation(),
			"aws_iam_instance_profile":         instanceProfile(),
			"aws_iam_policy":                   policy(),
			"aws_iam_role":                     role(),
			"aws_iam_role_policy_attachment":   rolePolicyAttachment(),
			"aws_sqs_queue":                    queue(),
			"aws_sqs_queue_policy":             queuePolicy(),
		},
		DataSourcesMap: map[string]*schema.Resource{
			"aws_caller_identity":             callerIdentity(),
			"aws_eks_cluster":                 cluster(),
			"aws_iam_openid_connect_provider": openIDConnectProvider(),
			"aws_partition":                   partition(),
			"aws_region":                      region(),
		},
		ConfigureContextFunc: configure,
	}
}

func configure(ctx context.Context, d *schema.ResourceData) (any, diag.Diagnostics) {
	var options []func(*config.LoadOptions) error
	if region := d.Get("region").(string); region != "" {
		options = append(options, config.WithRegion(region))
	}
	if key := d.Get("access_key").(string); key != "" {
		secret := d.Get("secret_key").(string)
		options = append(options, config.WithCredentialsProvider(credentials.NewStaticCredentialsProvider(key, secret, "")))
	}
	loaded, err := config.LoadDefaultConfig(ctx, options...)
	if err != nil {
		return nil, diag.FromErr(err)
	}
	if loaded.Region == "" {
		return nil, diag.Errorf("the provider aws has no region; hint: set region in its block, or AWS_REGION")
	}
	if loaded.BaseEndpoint == nil {
		return nil, diag.Errorf("AWS_ENDPOINT_URL is not set: this provider serves the local AWS alone; hint: use hashicorp/aws")
	}
	made := &clients{
		region: loaded.Region, config: loaded, defaultTags: map[string]string{},
		iam: iam.NewFromConfig(loaded), sts: sts.NewFromConfig(loaded),
	}
	for _, block := range d.Get("default_tags").([]any) {
		if block != nil {
			made.defaultTags = texts(block.(map[string]any)["tags"])
		}
	}
	return made, nil
}

// operations are what a resource does in AWS. `read` reports whether it is still there.
type operations struct {
	create func(context.Context, *schema.ResourceData, *clients) error
	read   func(context.Context, *schema.ResourceData, *clients) (bool, error)
	update func(context.Context, *schema.ResourceData, *clients) error
	delete func(context.Context, *schema.ResourceData, *clients) error
}

// managed makes a resource of its own attributes, those that all have (`region`, `tags`), and its operations.
func managed(own map[string]*schema.Schema, regional, tagged bool, does operations) *schema.Resource {
	all := maps.Clone(own)
	if regional {
		all["region"] = &schema.Schema{Type: schema.TypeString, Optional: true, Computed: true, ForceNew: true}
	}
	if tagged {
		all["tags"] = tagsSchema()
		all["tags_all"] = &schema.Schema{
			Type: schema.TypeMap, Optional: true, Computed: true, Elem: &schema.Schema{Type: schema.TypeString},
		}
	}
	read := func(ctx context.Context, d *schema.ResourceData, meta any) diag.Diagnostics {
		found, err := does.read(ctx, d, meta.(*clients))
		if err != nil && !isGone(err) {
			return diag.Errorf("reading %s: %s", d.Id(), err)
		}
		if !found || err != nil {
			d.SetId("")
		}
		return nil
	}
	made := &schema.Resource{
		Schema:      all,
		ReadContext: read,
		Importer:    &schema.ResourceImporter{StateContext: schema.ImportStatePassthroughContext},
		CreateContext: func(ctx context.Context, d *schema.ResourceData, meta any) diag.Diagnostics {
			if err := does.create(ctx, d, meta.(*clients)); err != nil {
				return diag.Errorf("creating: %s", err)
			}
			return read(ctx, d, meta)
		},
		DeleteContext: func(ctx context.Context, d *schema.ResourceData, meta any) diag.Diagnostics {
			if err := does.delete(ctx, d, meta.(*clients)); err != nil && !isGone(err) {
				return diag.Errorf("deleting %s: %s", d.Id(), err)
			}
			return nil
		},
		CustomizeDiff: func(_ context.Context, diff *schema.ResourceDiff, meta any) error {
			return complete(diff, meta.(*clients), regional, tagged)
		},
	}
	if does.update != nil {
		made.UpdateContext = func(ctx context.Context, d *schema.ResourceData, meta any) diag.Diagnostics {
			if err := does.update(ctx, d, meta.(*clients)); err != nil {
				return diag.Errorf("updating %s: %s", d.Id(), err)
			}
			return read(ctx, d, meta)
		}
	}
	return made
}

// complete says in the plan what follows from the provider: the region, and all tags.
func complete(diff *schema.ResourceDiff, with *clients, regional, tagged bool) error {
	if regional && diff.GetRawConfig().GetAttr("region").IsNull() && diff.Get("region").(string) != with.region {
		if err := diff.SetNew("region", with.region); err != nil {
			return err
		}
		if diff.Id() != "" {
			if err := diff.ForceNew("region"); err != nil {
				return err
			}
		}
	}
	if !tagged {
		return nil
	}
	if !diff.GetRawConfig().GetAttr("tags").IsWhollyKnown() {
		return diff.SetNewComputed("tags_all")
	}
	all := maps.Clone(with.defaultTags)
	maps.Copy(all, texts(diff.Get("tags")))
	if maps.Equal(all, texts(diff.Get("tags_all"))) && diff.Id() != "" {
		return nil
	}
	return diff.SetNew("tags_all", all)
}

func tagsSchema() *schema.Schema {
	return &schema.Schema{Type: schema.TypeMap, Optional: true, Elem: &schema.Schema{Type: schema.TypeString}}
}

func texts(given any) map[string]string {
	found := map[string]string{}
	values, _ := given.(map[string]any)
	for key, value := range values {
		found[key], _ = value.(string)
	}
	return found
}

func allTags(d *schema.ResourceData) map[string]string { return texts(d.Get("tags_all")) }

// changedTags are the keys to take away, and the tags to put.
func changedTags(d *schema.ResourceData) (gone []string, put map[string]string) {
	before, after := d.GetChange("tags_all")
	put = texts(after)
	for key := range texts(before) {
		if _, stays := put[key]; !stays {
			gone = append(gone, key)
		}
	}
	return gone, put
}

// setTags writes down what AWS has; tags that come from the provider's default are left out of `tags`.
func setTags(d *schema.ResourceData, with *clients, found map[string]string) error {
	own := map[string]string{}
	configured := texts(d.Get("tags"))
	for key, value := range found {
		_, named := configured[key]
		if standard, is := with.defaultTags[key]; named || !is || standard != value {
			own[key] = value
		}
	}
	return errors.Join(d.Set("tags", own), d.Set("tags_all", found))
}

func isGone(err error) bool {
	var api smithy.APIError
	if !errors.As(err, &api) {
		return false
	}
	switch api.ErrorCode() {
	case "NoSuchEntity", "ResourceNotFoundException", "AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist":
		return true
	}
	return false
}

func optional(d *schema.ResourceData, name string) *string {
	if value, given := d.GetOk(name); given {
		return aws.String(value.(string))
	}
	return nil
}
