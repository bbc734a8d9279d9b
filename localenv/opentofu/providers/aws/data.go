package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/hashicorp/terraform-plugin-sdk/v2/diag"
	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/schema"
)

// found makes a data source of its attributes and what sets them.
func found(
	own map[string]*schema.Schema, read func(context.Context, *schema.ResourceData, *clients) error,
) *schema.Resource {
	return &schema.Resource{
		Schema: own,
		ReadContext: func(ctx context.Context, d *schema.ResourceData, meta any) diag.Diagnostics {
			return diag.FromErr(read(ctx, d, meta.(*clients)))
		},
	}
}

// partitions are the domains of partitions, by the beginning of their regions.
var partitions = []struct{ region, name, suffix, reverse string }{
	{"cn-", "aws-cn", "amazonaws.com.cn", "cn.com.amazonaws"},
	{"us-gov-", "aws-us-gov", "amazonaws.com", "com.amazonaws"},
	{"", "aws", "amazonaws.com", "com.amazonaws"},
}

func partition() *schema.Resource {
	own := map[string]*schema.Schema{
		"dns_suffix":         computed(schema.TypeString),
		"partition":          computed(schema.TypeString),
		"reverse_dns_prefix": computed(schema.TypeString),
	}
	return found(own, func(_ context.Context, d *schema.ResourceData, with *clients) error {
		for _, each := range partitions {
			if strings.HasPrefix(with.region, each.region) {
				d.SetId(each.name)
				return errors.Join(
					d.Set("partition", each.name),
					d.Set("dns_suffix", each.suffix),
					d.Set("reverse_dns_prefix", each.reverse),
				)
			}
		}
		return fmt.Errorf("region %s is of no partition", with.region)
	})
}

func region() *schema.Resource {
	own := map[string]*schema.Schema{
		"region": {Type: schema.TypeString, Optional: true, Computed: true},
	}
	return found(own, func(_ context.Context, d *schema.ResourceData, with *clients) error {
		name := with.region
		if given := d.Get("region").(string); given != "" {
			name = given
		}
		d.SetId(name)
		return d.Set("region", name)
	})
}

func callerIdentity() *schema.Resource {
	own := map[string]*schema.Schema{
		"account_id": computed(schema.TypeString),
		"arn":        computed(schema.TypeString),
		"user_id":    computed(schema.TypeString),
	}
	return found(own, func(ctx context.Context, d *schema.ResourceData, with *clients) error {
		who, err := with.sts.GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
		if err != nil {
			return err
		}
		d.SetId(aws.ToString(who.Account))
		return errors.Join(
			d.Set("account_id", who.Account), d.Set("arn", who.Arn), d.Set("user_id", who.UserId),
		)
	})
}

func cluster() *schema.Resource {
	nested := func(fields map[string]*schema.Schema) *schema.Schema {
		return &schema.Schema{Type: schema.TypeList, Computed: true, Elem: &schema.Resource{Schema: fields}}
	}
	name := clusterName()
	name.ForceNew = false
	own := map[string]*schema.Schema{
		"arn":                   computed(schema.TypeString),
		"certificate_authority": nested(map[string]*schema.Schema{"data": computed(schema.TypeString)}),
		"endpoint":              computed(schema.TypeString),
		"identity": nested(map[string]*schema.Schema{
			"oidc": nested(map[string]*schema.Schema{"issuer": computed(schema.TypeString)}),
		}),
		"name":    name,
		"region":  {Type: schema.TypeString, Optional: true, Computed: true},
		"status":  computed(schema.TypeString),
		"version": computed(schema.TypeString),
	}
	return found(own, func(ctx context.Context, d *schema.ResourceData, with *clients) error {
		answer, err := with.eks(d).DescribeCluster(ctx, &eks.DescribeClusterInput{Name: text(d, "name")})
		if err != nil {
			return fmt.Errorf("reading EKS Cluster (%s): %w", d.Get("name"), err)
		}
		d.SetId(d.Get("name").(string))
		issuer := aws.ToString(answer.Cluster.Identity.Oidc.Issuer)
		return errors.Join(
			d.Set("arn", answer.Cluster.Arn),
			d.Set("certificate_authority", []any{
				map[string]any{"data": aws.ToString(answer.Cluster.CertificateAuthority.Data)},
			}),
			d.Set("endpoint", answer.Cluster.Endpoint),
			d.Set("identity", []any{map[string]any{"oidc": []any{map[string]any{"issuer": issuer}}}}),
			d.Set("region", with.region),
			d.Set("status", string(answer.Cluster.Status)),
			d.Set("version", answer.Cluster.Version),
		)
	})
}

func openIDConnectProvider() *schema.Resource {
	own := map[string]*schema.Schema{
		"arn": {
			Type: schema.TypeString, Optional: true, Computed: true, ValidateFunc: validARN,
			ExactlyOneOf: []string{"arn", "url"},
		},
		"url": {
			Type: schema.TypeString, Optional: true, Computed: true, ExactlyOneOf: []string{"arn", "url"},
			DiffSuppressFunc: func(_, before, after string, _ *schema.ResourceData) bool {
				return strings.TrimPrefix(before, "https://") == strings.TrimPrefix(after, "https://")
			},
		},
		"client_id_list": {Type: schema.TypeList, Computed: true, Elem: &schema.Schema{Type: schema.TypeString}},
	}
	return found(own, func(ctx context.Context, d *schema.ResourceData, with *clients) error {
		wanted := strings.TrimPrefix(d.Get("url").(string), "https://")
		listed, err := with.iam.ListOpenIDConnectProviders(ctx, &iam.ListOpenIDConnectProvidersInput{})
		if err != nil {
			return err
		}
		for _, each := range listed.OpenIDConnectProviderList {
			name := aws.ToString(each.Arn)
			if name != d.Get("arn").(string) && (wanted == "" || !strings.HasSuffix(name, ":oidc-provider/"+wanted)) {
				continue
			}
			full, err := with.iam.GetOpenIDConnectProvider(
				ctx, &iam.GetOpenIDConnectProviderInput{OpenIDConnectProviderArn: each.Arn},
			)
			if err != nil {
				return err
			}
			d.SetId(name)
			return errors.Join(
				d.Set("arn", name), d.Set("url", full.Url), d.Set("client_id_list", full.ClientIDList),
			)
		}
		return fmt.Errorf("finding IAM OIDC Provider by url (%s): not found", d.Get("url"))
	})
}
