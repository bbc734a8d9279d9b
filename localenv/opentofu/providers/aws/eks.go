package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"
	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/schema"
	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/validation"
)

func tagInEKS(ctx context.Context, d *schema.ResourceData, with *clients, arn string) error {
	if !d.HasChange("tags_all") {
		return nil
	}
	gone, put := changedTags(d)
	client := with.eks(d)
	if len(gone) > 0 {
		untag := &eks.UntagResourceInput{ResourceArn: aws.String(arn), TagKeys: gone}
		if _, err := client.UntagResource(ctx, untag); err != nil {
			return err
		}
	}
	if len(put) == 0 {
		return nil
	}
	_, err := client.TagResource(ctx, &eks.TagResourceInput{ResourceArn: aws.String(arn), Tags: put})
	return err
}

func text(d *schema.ResourceData, name string) *string { return aws.String(d.Get(name).(string)) }

func timed(at *time.Time) string { return aws.ToTime(at).Format(time.RFC3339) }

func setTexts(given []any) (found []string) {
	for _, each := range given {
		found = append(found, each.(string))
	}
	return found
}

func accessEntry() *schema.Resource {
	own := map[string]*schema.Schema{
		"access_entry_arn": computed(schema.TypeString),
		"cluster_name":     clusterName(),
		"created_at":       computed(schema.TypeString),
		"kubernetes_groups": {
			Type: schema.TypeSet, Optional: true, Computed: true, Elem: &schema.Schema{Type: schema.TypeString},
		},
		"modified_at":   computed(schema.TypeString),
		"principal_arn": {Type: schema.TypeString, Required: true, ForceNew: true, ValidateFunc: validARN},
		"type": {
			Type: schema.TypeString, Optional: true, ForceNew: true, Default: "STANDARD",
			ValidateFunc: validation.StringInSlice(
				[]string{"EC2", "EC2_LINUX", "EC2_WINDOWS", "FARGATE_LINUX", "HYBRID_LINUX", "STANDARD"}, false,
			),
		},
		"user_name": {Type: schema.TypeString, Optional: true, Computed: true},
	}
	return managed(own, true, true, operations{
		create: func(ctx context.Context, d *schema.ResourceData, with *clients) error {
			_, err := with.eks(d).CreateAccessEntry(ctx, &eks.CreateAccessEntryInput{
				ClusterName:      text(d, "cluster_name"),
				PrincipalArn:     text(d, "principal_arn"),
				Type:             text(d, "type"),
				KubernetesGroups: setTexts(d.Get("kubernetes_groups").(*schema.Set).List()),
				Username:         optional(d, "user_name"),
				Tags:             allTags(d),
			})
			d.SetId(d.Get("cluster_name").(string) + ":" + d.Get("principal_arn").(string))
			return err
		},
		read: func(ctx context.Context, d *schema.ResourceData, with *clients) (bool, error) {
			cluster, principal, _ := strings.Cut(d.Id(), ":")
			found, err := with.eks(d).DescribeAccessEntry(ctx, &eks.DescribeAccessEntryInput{
				ClusterName: aws.String(cluster), PrincipalArn: aws.String(principal),
			})
			if err != nil {
				return false, err
			}
			entry := found.AccessEntry
			return true, errors.Join(
				d.Set("access_entry_arn", entry.AccessEntryArn),
				d.Set("cluster_name", entry.ClusterName),
				d.Set("created_at", timed(entry.CreatedAt)),
				d.Set("kubernetes_groups", entry.KubernetesGroups),
				d.Set("modified_at", timed(entry.ModifiedAt)),
				d.Set("principal_arn", entry.PrincipalArn),
				d.Set("type", entry.Type),
				d.Set("user_name", entry.Username),
				setTags(d, with, entry.Tags),
			)
		},
		update: func(ctx context.Context, d *schema.ResourceData, with *clients) error {
			if d.HasChanges("kubernetes_groups", "user_name") {
				_, err := with.eks(d).UpdateAccessEntry(ctx, &eks.UpdateAccessEntryInput{
					ClusterName:      text(d, "cluster_name"),
					PrincipalArn:     text(d, "principal_arn"),
					KubernetesGroups: setTexts(d.Get("kubernetes_groups").(*schema.Set).List()),
					Username:         text(d, "user_name"),
				})
				if err != nil {
					return err
				}
			}
			return tagInEKS(ctx, d, with, d.Get("access_entry_arn").(string))
		},
		delete: func(ctx context.Context, d *schema.ResourceData, with *clients) error {
			_, err := with.eks(d).DeleteAccessEntry(ctx, &eks.DeleteAccessEntryInput{
				ClusterName: text(d, "cluster_name"), PrincipalArn: text(d, "principal_arn"),
			})
			return err
		},
	})
}

func podIdentityAssociation() *schema.Resource {
	fixed := func() *schema.Schema { return &schema.Schema{Type: schema.TypeString, Required: true, ForceNew: true} }
	own := map[string]*schema.Schema{
		"association_arn":      computed(schema.TypeString),
		"association_id":       computed(schema.TypeString),
		"cluster_name":         fixed(),
		"disable_session_tags": {Type: schema.TypeBool, Optional: true, Default: false},
		"namespace":            fixed(),
		"role_arn":             {Type: schema.TypeString, Required: true, ValidateFunc: validARN},
		"service_account":      fixed(),
		"target_role_arn":      {Type: schema.TypeString, Optional: true, ValidateFunc: validARN},
	}
	return managed(own, true, true, operations{
		create: func(ctx context.Context, d *schema.ResourceData, with *clients) error {
			made, err := with.eks(d).CreatePodIdentityAssociation(ctx, &eks.CreatePodIdentityAssociationInput{
				ClusterName:    text(d, "cluster_name"),
				Namespace:      text(d, "namespace"),
				ServiceAccount: text(d, "service_account"),
				RoleArn:        text(d, "role_arn"),
				TargetRoleArn:  optional(d, "target_role_arn"),
				Tags:           allTags(d),
			})
			if err == nil {
				d.SetId(aws.ToString(made.Association.AssociationId))
			}
			return err
		},
		read: func(ctx context.Context, d *schema.ResourceData, with *clients) (bool, error) {
			found, err := with.eks(d).DescribePodIdentityAssociation(ctx, &eks.DescribePodIdentityAssociationInput{
				ClusterName: text(d, "cluster_name"), AssociationId: aws.String(d.Id()),
			})
			if err != nil {
				return false, err
			}
			made := found.Association
			return true, errors.Join(
				d.Set("association_arn", made.AssociationArn),
				d.Set("association_id", made.AssociationId),
				d.Set("namespace", made.Namespace),
				d.Set("role_arn", made.RoleArn),
				d.Set("service_account", made.ServiceAccount),
				d.Set("target_role_arn", made.TargetRoleArn),
				setTags(d, with, made.Tags),
			)
		},
		update: func(ctx context.Context, d *schema.ResourceData, with *clients) error {
			if d.HasChanges("role_arn", "target_role_arn") {
				_, err := with.eks(d).UpdatePodIdentityAssociation(ctx, &eks.UpdatePodIdentityAssociationInput{
					ClusterName:   text(d, "cluster_name"),
					AssociationId: aws.String(d.Id()),
					RoleArn:       text(d, "role_arn"),
					TargetRoleArn: optional(d, "target_role_arn"),
				})
				if err != nil {
					return err
				}
			}
			return tagInEKS(ctx, d, with, d.Get("association_arn").(string))
		},
		delete: func(ctx context.Context, d *schema.ResourceData, with *clients) error {
			_, err := with.eks(d).DeletePodIdentityAssociation(ctx, &eks.DeletePodIdentityAssociationInput{
				ClusterName: text(d, "cluster_name"), AssociationId: aws.String(d.Id()),
			})
			return err
		},
	})
}

func fargateProfile() *schema.Resource {
	needed := func() *schema.Schema {
		return &schema.Schema{
			Type: schema.TypeString, Required: true, ForceNew: true, ValidateFunc: validation.NoZeroValues,
		}
	}
	own := map[string]*schema.Schema{
		"arn":                    computed(schema.TypeString),
		"cluster_name":           clusterName(),
		"fargate_profile_name":   needed(),
		"pod_execution_role_arn": needed(),
		"selector": {
			Type: schema.TypeSet, Required: true, ForceNew: true, MinItems: 1,
			Elem: &schema.Resource{Schema: map[string]*schema.Schema{
				"labels": {
					Type: schema.TypeMap, Optional: true, ForceNew: true, Elem: &schema.Schema{Type: schema.TypeString},
				},
				"namespace": needed(),
			}},
		},
		"status": computed(schema.TypeString),
		"subnet_ids": {
			Type: schema.TypeSet, Optional: true, ForceNew: true, MinItems: 1,
			Elem: &schema.Schema{Type: schema.TypeString},
		},
	}
	return managed(own, true, true, operations{
		create: func(ctx context.Context, d *schema.ResourceData, with *clients) error {
			var selectors []types.FargateProfileSelector
			for _, each := range d.Get("selector").(*schema.Set).List() {
				fields := each.(map[string]any)
				selectors = append(selectors, types.FargateProfileSelector{
					Namespace: aws.String(fields["namespace"].(string)), Labels: texts(fields["labels"]),
				})
			}
			_, err := with.eks(d).CreateFargateProfile(ctx, &eks.CreateFargateProfileInput{
				ClusterName:         text(d, "cluster_name"),
				FargateProfileName:  text(d, "fargate_profile_name"),
				PodExecutionRoleArn: text(d, "pod_execution_role_arn"),
				Selectors:           selectors,
				Subnets:             setTexts(d.Get("subnet_ids").(*schema.Set).List()),
				Tags:                allTags(d),
			})
			d.SetId(d.Get("cluster_name").(string) + ":" + d.Get("fargate_profile_name").(string))
			return err
		},
		read: func(ctx context.Context, d *schema.ResourceData, with *clients) (bool, error) {
			cluster, name, _ := strings.Cut(d.Id(), ":")
			found, err := with.eks(d).DescribeFargateProfile(ctx, &eks.DescribeFargateProfileInput{
				ClusterName: aws.String(cluster), FargateProfileName: aws.String(name),
			})
			if err != nil {
				return false, err
			}
			profile := found.FargateProfile
			var selectors []any
			for _, each := range profile.Selectors {
				selectors = append(selectors, map[string]any{
					"namespace": aws.ToString(each.Namespace), "labels": each.Labels,
				})
			}
			return true, errors.Join(
				d.Set("arn", profile.FargateProfileArn),
				d.Set("pod_execution_role_arn", profile.PodExecutionRoleArn),
				d.Set("selector", selectors),
				d.Set("status", string(profile.Status)),
				d.Set("subnet_ids", profile.Subnets),
				setTags(d, with, profile.Tags),
			)
		},
		update: func(ctx context.Context, d *schema.ResourceData, with *clients) error {
			return tagInEKS(ctx, d, with, d.Get("arn").(string))
		},
		delete: func(ctx context.Context, d *schema.ResourceData, with *clients) error {
			_, err := with.eks(d).DeleteFargateProfile(ctx, &eks.DeleteFargateProfileInput{
				ClusterName: text(d, "cluster_name"), FargateProfileName: text(d, "fargate_profile_name"),
			})
			return err
		},
	})
}

func addon() *schema.Resource {
	own := map[string]*schema.Schema{
		"addon_name": {
			Type: schema.TypeString, Required: true, ForceNew: true, ValidateFunc: validation.NoZeroValues,
		},
		"addon_version": {Type: schema.TypeString, Optional: true, Computed: true},
		"arn":           computed(schema.TypeString),
		"cluster_name":  clusterName(),
		"preserve":      {Type: schema.TypeBool, Optional: true},
	}
	return managed(own, true, true, operations{
		create: func(ctx context.Context, d *schema.ResourceData, with *clients) error {
			_, err := with.eks(d).CreateAddon(ctx, &eks.CreateAddonInput{
				ClusterName:  text(d, "cluster_name"),
				AddonName:    text(d, "addon_name"),
				AddonVersion: optional(d, "addon_version"),
				Tags:         allTags(d),
			})
			d.SetId(d.Get("cluster_name").(string) + ":" + d.Get("addon_name").(string))
			return err
		},
		read: func(ctx context.Context, d *schema.ResourceData, with *clients) (bool, error) {
			cluster, name, _ := strings.Cut(d.Id(), ":")
			found, err := with.eks(d).DescribeAddon(ctx, &eks.DescribeAddonInput{
				ClusterName: aws.String(cluster), AddonName: aws.String(name),
			})
			if err != nil {
				return false, err
			}
			return true, errors.Join(
				d.Set("addon_version", found.Addon.AddonVersion),
				d.Set("arn", found.Addon.AddonArn),
				setTags(d, with, found.Addon.Tags),
			)
		},
		update: func(ctx context.Context, d *schema.ResourceData, with *clients) error {
			if d.HasChange("addon_version") {
				_, err := with.eks(d).UpdateAddon(ctx, &eks.UpdateAddonInput{
					ClusterName:  text(d, "cluster_name"),
					AddonName:    text(d, "addon_name"),
					AddonVersion: text(d, "addon_version"),
				})
				if err != nil {
					return err
				}
			}
			return tagInEKS(ctx, d, with, d.Get("arn").(string))
		},
		delete: func(ctx context.Context, d *schema.ResourceData, with *clients) error {
			_, err := with.eks(d).DeleteAddon(ctx, &eks.DeleteAddonInput{
				ClusterName: text(d, "cluster_name"), AddonName: text(d, "addon_name"),
				Preserve: d.Get("preserve").(bool),
			})
			return err
		},
	})
}
