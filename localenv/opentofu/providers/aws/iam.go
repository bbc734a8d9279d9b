package main

import (
	"context"
	"errors"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"
	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/id"
	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/schema"
	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/validation"
)

func iamTags(tags map[string]string) []types.Tag {
	var found []types.Tag
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		found = append(found, types.Tag{Key: aws.String(key), Value: aws.String(tags[key])})
	}
	return found
}

func tagsFromIAM(tags []types.Tag) map[string]string {
	found := map[string]string{}
	for _, tag := range tags {
		found[aws.ToString(tag.Key)] = aws.ToString(tag.Value)
	}
	return found
}

func role() *schema.Resource {
	own := map[string]*schema.Schema{
		"arn":                computed(schema.TypeString),
		"assume_role_policy": policyDocument(validPolicy),
		"create_date":        computed(schema.TypeString),
		"description": {
			Type: schema.TypeString, Optional: true,
			ValidateFunc: validation.All(
				validation.StringLenBetween(0, 1000),
				validation.StringDoesNotMatch(regexp.MustCompile("[“‘]"), "has typographic quotes"),
			),
		},
		"force_detach_policies": {Type: schema.TypeBool, Optional: true, Default: false},
		"max_session_duration": {
			Type: schema.TypeInt, Optional: true, Default: 3600, ValidateFunc: validation.IntBetween(3600, 43200),
		},
		"path": {
			Type: schema.TypeString, Optional: true, Default: "/", ForceNew: true,
			ValidateFunc: validation.StringLenBetween(0, 512),
		},
		"permissions_boundary": {Type: schema.TypeString, Optional: true, ValidateFunc: validARN},
		"unique_id":            computed(schema.TypeString),
	}
	maps.Copy(own, named(64, iamCharacters))
	return managed(own, false, true, operations{
		create: func(ctx context.Context, d *schema.ResourceData, with *clients) error {
			made, err := with.iam.CreateRole(ctx, &iam.CreateRoleInput{
				RoleName:                 aws.String(nameOf(d)),
				AssumeRolePolicyDocument: aws.String(d.Get("assume_role_policy").(string)),
				Path:                     aws.String(d.Get("path").(string)),
				Description:              optional(d, "description"),
				MaxSessionDuration:       aws.Int32(int32(d.Get("max_session_duration").(int))),
				PermissionsBoundary:      optional(d, "permissions_boundary"),
				Tags:                     iamTags(allTags(d)),
			})
			if err == nil {
				d.SetId(aws.ToString(made.Role.RoleName))
			}
			return err
		},
		read: func(ctx context.Context, d *schema.ResourceData, with *clients) (bool, error) {
			found, err := with.iam.GetRole(ctx, &iam.GetRoleInput{RoleName: aws.String(d.Id())})
			if err != nil {
				return false, err
			}
			trust, err := url.QueryUnescape(aws.ToString(found.Role.AssumeRolePolicyDocument))
			boundary := ""
			if found.Role.PermissionsBoundary != nil {
				boundary = aws.ToString(found.Role.PermissionsBoundary.PermissionsBoundaryArn)
			}
			return true, errors.Join(
				err,
				d.Set("arn", found.Role.Arn),
				d.Set("assume_role_policy", normalized(trust)),
				d.Set("create_date", aws.ToTime(found.Role.CreateDate).Format(time.RFC3339)),
				d.Set("description", found.Role.Description),
				d.Set("max_session_duration", found.Role.MaxSessionDuration),
				d.Set("name", found.Role.RoleName),
				d.Set("name_prefix", prefixOf(aws.ToString(found.Role.RoleName))),
				d.Set("path", found.Role.Path),
				d.Set("permissions_boundary", boundary),
				d.Set("unique_id", found.Role.RoleId),
				setTags(d, with, tagsFromIAM(found.Role.Tags)),
			)
		},
		update: updateRole,
		delete: deleteRole,
	})
}

func updateRole(ctx context.Context, d *schema.ResourceData, with *clients) error {
	name := aws.String(d.Id())
	var failed []error
	note := func(_ any, err error) { failed = append(failed, err) }
	if d.HasChange("assume_role_policy") {
		note(with.iam.UpdateAssumeRolePolicy(ctx, &iam.UpdateAssumeRolePolicyInput{
			RoleName: name, PolicyDocument: aws.String(d.Get("assume_role_policy").(string)),
		}))
	}
	if d.HasChanges("description", "max_session_duration") {
		note(with.iam.UpdateRole(ctx, &iam.UpdateRoleInput{
			RoleName:           name,
			Description:        aws.String(d.Get("description").(string)),
			MaxSessionDuration: aws.Int32(int32(d.Get("max_session_duration").(int))),
		}))
	}
	if d.HasChange("permissions_boundary") {
		if boundary := optional(d, "permissions_boundary"); boundary != nil {
			note(with.iam.PutRolePermissionsBoundary(ctx, &iam.PutRolePermissionsBoundaryInput{
				RoleName: name, PermissionsBoundary: boundary,
			}))
		} else {
			note(with.iam.DeleteRolePermissionsBoundary(ctx, &iam.DeleteRolePermissionsBoundaryInput{RoleName: name}))
		}
	}
	if d.HasChange("tags_all") {
		gone, put := changedTags(d)
		if len(gone) > 0 {
			note(with.iam.UntagRole(ctx, &iam.UntagRoleInput{RoleName: name, TagKeys: gone}))
		}
		if len(put) > 0 {
			note(with.iam.TagRole(ctx, &iam.TagRoleInput{RoleName: name, Tags: iamTags(put)}))
		}
	}
	return errors.Join(failed...)
}

func deleteRole(ctx context.Context, d *schema.ResourceData, with *clients) error {
	name := aws.String(d.Id())
	if d.Get("force_detach_policies").(bool) {
		attached, err := with.iam.ListAttachedRolePolicies(ctx, &iam.ListAttachedRolePoliciesInput{RoleName: name})
		if err != nil {
			return err
		}
		for _, each := range attached.AttachedPolicies {
			detach := &iam.DetachRolePolicyInput{RoleName: name, PolicyArn: each.PolicyArn}
			if _, err := with.iam.DetachRolePolicy(ctx, detach); err != nil {
				return err
			}
		}
	}
	_, err := with.iam.DeleteRole(ctx, &iam.DeleteRoleInput{RoleName: name})
	return err
}

func rolePolicyAttachment() *schema.Resource {
	own := map[string]*schema.Schema{
		"policy_arn": {Type: schema.TypeString, Required: true, ForceNew: true, ValidateFunc: validARN},
		"role":       {Type: schema.TypeString, Required: true, ForceNew: true},
	}
	return managed(own, false, false, operations{
		create: func(ctx context.Context, d *schema.ResourceData, with *clients) error {
			role, arn := d.Get("role").(string), d.Get("policy_arn").(string)
			attach := &iam.AttachRolePolicyInput{RoleName: aws.String(role), PolicyArn: aws.String(arn)}
			_, err := with.iam.AttachRolePolicy(ctx, attach)
			d.SetId(id.PrefixedUniqueId(role + "-"))
			return err
		},
		read: func(ctx context.Context, d *schema.ResourceData, with *clients) (bool, error) {
			pages := iam.NewListAttachedRolePoliciesPaginator(with.iam, &iam.ListAttachedRolePoliciesInput{
				RoleName: aws.String(d.Get("role").(string)),
			})
			for pages.HasMorePages() {
				page, err := pages.NextPage(ctx)
				if err != nil {
					return false, err
				}
				for _, each := range page.AttachedPolicies {
					if aws.ToString(each.PolicyArn) == d.Get("policy_arn").(string) {
						return true, nil
					}
				}
			}
			return false, nil
		},
		delete: func(ctx context.Context, d *schema.ResourceData, with *clients) error {
			_, err := with.iam.DetachRolePolicy(ctx, &iam.DetachRolePolicyInput{
				RoleName: aws.String(d.Get("role").(string)), PolicyArn: aws.String(d.Get("policy_arn").(string)),
			})
			return err
		},
	})
}

func policy() *schema.Resource {
	own := map[string]*schema.Schema{
		"arn":              computed(schema.TypeString),
		"attachment_count": computed(schema.TypeInt),
		"description":      {Type: schema.TypeString, Optional: true, ForceNew: true},
		"path":             {Type: schema.TypeString, Optional: true, Default: "/", ForceNew: true},
		"policy":           policyDocument(validPolicy),
		"policy_id":        computed(schema.TypeString),
	}
	maps.Copy(own, named(128, iamCharacters))
	return managed(own, false, true, operations{
		create: func(ctx context.Context, d *schema.ResourceData, with *clients) error {
			made, err := with.iam.CreatePolicy(ctx, &iam.CreatePolicyInput{
				PolicyName:     aws.String(nameOf(d)),
				PolicyDocument: aws.String(d.Get("policy").(string)),
				Path:           aws.String(d.Get("path").(string)),
				Description:    optional(d, "description"),
				Tags:           iamTags(allTags(d)),
			})
			if err == nil {
				d.SetId(aws.ToString(made.Policy.Arn))
			}
			return err
		},
		read: func(ctx context.Context, d *schema.ResourceData, with *clients) (bool, error) {
			found, err := with.iam.GetPolicy(ctx, &iam.GetPolicyInput{PolicyArn: aws.String(d.Id())})
			if err != nil {
				return false, err
			}
			version, err := with.iam.GetPolicyVersion(ctx, &iam.GetPolicyVersionInput{
				PolicyArn: aws.String(d.Id()), VersionId: found.Policy.DefaultVersionId,
			})
			if err != nil {
				return false, err
			}
			document, err := url.QueryUnescape(aws.ToString(version.PolicyVersion.Document))
			return true, errors.Join(
				err,
				d.Set("arn", found.Policy.Arn),
				d.Set("attachment_count", found.Policy.AttachmentCount),
				d.Set("description", found.Policy.Description),
				d.Set("name", found.Policy.PolicyName),
				d.Set("name_prefix", prefixOf(aws.ToString(found.Policy.PolicyName))),
				d.Set("path", found.Policy.Path),
				d.Set("policy", normalized(document)),
				d.Set("policy_id", found.Policy.PolicyId),
				setTags(d, with, tagsFromIAM(found.Policy.Tags)),
			)
		},
		update: updatePolicy,
		delete: func(ctx context.Context, d *schema.ResourceData, with *clients) error {
			if err := deleteVersions(ctx, d.Id(), with, 0); err != nil {
				return err
			}
			_, err := with.iam.DeletePolicy(ctx, &iam.DeletePolicyInput{PolicyArn: aws.String(d.Id())})
			return err
		},
	})
}

func updatePolicy(ctx context.Context, d *schema.ResourceData, with *clients) error {
	arn := aws.String(d.Id())
	if d.HasChange("policy") {
		// A managed policy has five versions at most.
		if err := deleteVersions(ctx, d.Id(), with, 3); err != nil {
			return err
		}
		if _, err := with.iam.CreatePolicyVersion(ctx, &iam.CreatePolicyVersionInput{
			PolicyArn: arn, PolicyDocument: aws.String(d.Get("policy").(string)), SetAsDefault: true,
		}); err != nil {
			return err
		}
	}
	if !d.HasChange("tags_all") {
		return nil
	}
	gone, put := changedTags(d)
	if len(gone) > 0 {
		if _, err := with.iam.UntagPolicy(ctx, &iam.UntagPolicyInput{PolicyArn: arn, TagKeys: gone}); err != nil {
			return err
		}
	}
	if len(put) == 0 {
		return nil
	}
	_, err := with.iam.TagPolicy(ctx, &iam.TagPolicyInput{PolicyArn: arn, Tags: iamTags(put)})
	return err
}

// deleteVersions deletes the oldest versions of a policy that are not its default, all but `keep`.
func deleteVersions(ctx context.Context, arn string, with *clients, keep int) error {
	found, err := with.iam.ListPolicyVersions(ctx, &iam.ListPolicyVersionsInput{PolicyArn: aws.String(arn)})
	if err != nil {
		return err
	}
	others := slices.DeleteFunc(found.Versions, func(v types.PolicyVersion) bool { return v.IsDefaultVersion })
	slices.SortFunc(others, func(a, b types.PolicyVersion) int {
		return aws.ToTime(b.CreateDate).Compare(aws.ToTime(a.CreateDate))
	})
	for _, version := range others[min(keep, len(others)):] {
		delete := &iam.DeletePolicyVersionInput{PolicyArn: aws.String(arn), VersionId: version.VersionId}
		if _, err := with.iam.DeletePolicyVersion(ctx, delete); err != nil {
			return err
		}
	}
	return nil
}

func instanceProfile() *schema.Resource {
	own := map[string]*schema.Schema{
		"arn":         computed(schema.TypeString),
		"create_date": computed(schema.TypeString),
		"path":        {Type: schema.TypeString, Optional: true, Default: "/", ForceNew: true},
		"role":        {Type: schema.TypeString, Optional: true},
		"unique_id":   computed(schema.TypeString),
	}
	maps.Copy(own, named(128, iamCharacters))
	return managed(own, false, true, operations{
		create: func(ctx context.Context, d *schema.ResourceData, with *clients) error {
			made, err := with.iam.CreateInstanceProfile(ctx, &iam.CreateInstanceProfileInput{
				InstanceProfileName: aws.String(nameOf(d)),
				Path:                aws.String(d.Get("path").(string)),
				Tags:                iamTags(allTags(d)),
			})
			if err != nil {
				return err
			}
			d.SetId(aws.ToString(made.InstanceProfile.InstanceProfileName))
			return addRole(ctx, d, with, d.Get("role").(string))
		},
		read: func(ctx context.Context, d *schema.ResourceData, with *clients) (bool, error) {
			found, err := with.iam.GetInstanceProfile(ctx, &iam.GetInstanceProfileInput{
				InstanceProfileName: aws.String(d.Id()),
			})
			if err != nil {
				return false, err
			}
			profile, role := found.InstanceProfile, ""
			if len(profile.Roles) > 0 {
				role = aws.ToString(profile.Roles[0].RoleName)
			}
			return true, errors.Join(
				d.Set("arn", profile.Arn),
				d.Set("create_date", aws.ToTime(profile.CreateDate).Format(time.RFC3339)),
				d.Set("name", profile.InstanceProfileName),
				d.Set("name_prefix", prefixOf(aws.ToString(profile.InstanceProfileName))),
				d.Set("path", profile.Path),
				d.Set("role", role),
				d.Set("unique_id", profile.InstanceProfileId),
				setTags(d, with, tagsFromIAM(profile.Tags)),
			)
		},
		update: updateInstanceProfile,
		delete: func(ctx context.Context, d *schema.ResourceData, with *clients) error {
			if err := removeRole(ctx, d, with, d.Get("role").(string)); err != nil {
				return err
			}
			_, err := with.iam.DeleteInstanceProfile(ctx, &iam.DeleteInstanceProfileInput{
				InstanceProfileName: aws.String(d.Id()),
			})
			return err
		},
	})
}

func updateInstanceProfile(ctx context.Context, d *schema.ResourceData, with *clients) error {
	var failed []error
	if d.HasChange("role") {
		before, after := d.GetChange("role")
		failed = append(
			failed, removeRole(ctx, d, with, before.(string)), addRole(ctx, d, with, after.(string)),
		)
	}
	if d.HasChange("tags_all") {
		gone, put := changedTags(d)
		if len(gone) > 0 {
			_, err := with.iam.UntagInstanceProfile(ctx, &iam.UntagInstanceProfileInput{
				InstanceProfileName: aws.String(d.Id()), TagKeys: gone,
			})
			failed = append(failed, err)
		}
		if len(put) > 0 {
			_, err := with.iam.TagInstanceProfile(ctx, &iam.TagInstanceProfileInput{
				InstanceProfileName: aws.String(d.Id()), Tags: iamTags(put),
			})
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

func addRole(ctx context.Context, d *schema.ResourceData, with *clients, role string) error {
	if role == "" {
		return nil
	}
	_, err := with.iam.AddRoleToInstanceProfile(ctx, &iam.AddRoleToInstanceProfileInput{
		InstanceProfileName: aws.String(d.Id()), RoleName: aws.String(role),
	})
	return err
}

func removeRole(ctx context.Context, d *schema.ResourceData, with *clients, role string) error {
	if role == "" {
		return nil
	}
	_, err := with.iam.RemoveRoleFromInstanceProfile(ctx, &iam.RemoveRoleFromInstanceProfileInput{
		InstanceProfileName: aws.String(d.Id()), RoleName: aws.String(role),
	})
	if isGone(err) {
		return nil
	}
	return err
}
