package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	eventtypes "github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/schema"
	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/validation"
)

// queueNumbers are the attributes of a queue that are numbers, by what SQS calls them.
var queueNumbers = map[string]string{
	"delay_seconds":              "DelaySeconds",
	"max_message_size":           "MaximumMessageSize",
	"message_retention_seconds":  "MessageRetentionPeriod",
	"receive_wait_time_seconds":  "ReceiveMessageWaitTimeSeconds",
	"visibility_timeout_seconds": "VisibilityTimeout",
}

var queueNames = regexp.MustCompile(`^[0-9A-Za-z_-]{1,80}$`)

func queue() *schema.Resource {
	number := func(standard, least, most int) *schema.Schema {
		return &schema.Schema{
			Type: schema.TypeInt, Optional: true, Default: standard, ValidateFunc: validation.IntBetween(least, most),
		}
	}
	own := map[string]*schema.Schema{
		"arn":           computed(schema.TypeString),
		"delay_seconds": number(0, 0, 900),
		"kms_data_key_reuse_period_seconds": {
			Type: schema.TypeInt, Optional: true, Computed: true, ValidateFunc: validation.IntBetween(60, 86400),
			DiffSuppressFunc: func(_, _, _ string, d *schema.ResourceData) bool {
				return !d.Get("sqs_managed_sse_enabled").(bool) && d.Get("kms_master_key_id").(string) == ""
			},
		},
		"kms_master_key_id": {
			Type: schema.TypeString, Optional: true, ConflictsWith: []string{"sqs_managed_sse_enabled"},
		},
		"max_message_size":           number(1048576, 1024, 1048576),
		"message_retention_seconds":  number(345600, 60, 1209600),
		"receive_wait_time_seconds":  number(0, 0, 20),
		"visibility_timeout_seconds": number(30, 0, 43200),
		"sqs_managed_sse_enabled": {
			Type: schema.TypeBool, Optional: true, Computed: true, ConflictsWith: []string{"kms_master_key_id"},
		},
		"url": computed(schema.TypeString),
	}
	maps.Copy(own, named(80, ".*"))
	made := managed(own, true, true, operations{
		create: func(ctx context.Context, d *schema.ResourceData, with *clients) error {
			made, err := with.sqs(d).CreateQueue(ctx, &sqs.CreateQueueInput{
				QueueName: aws.String(nameOf(d)), Attributes: queueAttributes(d), Tags: allTags(d),
			})
			if err == nil {
				d.SetId(aws.ToString(made.QueueUrl))
			}
			return err
		},
		read:   readQueue,
		update: updateQueue,
		delete: func(ctx context.Context, d *schema.ResourceData, with *clients) error {
			_, err := with.sqs(d).DeleteQueue(ctx, &sqs.DeleteQueueInput{QueueUrl: aws.String(d.Id())})
			return err
		},
	})
	general := made.CustomizeDiff
	made.CustomizeDiff = func(ctx context.Context, diff *schema.ResourceDiff, meta any) error {
		if name := diff.Get("name").(string); name != "" && !queueNames.MatchString(name) {
			return fmt.Errorf("invalid queue name: %s", name)
		}
		return general(ctx, diff, meta)
	}
	return made
}

func queueAttributes(d *schema.ResourceData) map[string]string {
	found := map[string]string{}
	for name, theirs := range queueNumbers {
		found[theirs] = strconv.Itoa(d.Get(name).(int))
	}
	if key := d.Get("kms_master_key_id").(string); key != "" {
		found["KmsMasterKeyId"] = key
		if period := d.Get("kms_data_key_reuse_period_seconds").(int); period != 0 {
			found["KmsDataKeyReusePeriodSeconds"] = strconv.Itoa(period)
		}
	} else if configured := d.GetRawConfig().GetAttr("sqs_managed_sse_enabled"); !configured.IsNull() {
		found["SqsManagedSseEnabled"] = strconv.FormatBool(configured.True())
	}
	return found
}

func readQueue(ctx context.Context, d *schema.ResourceData, with *clients) (bool, error) {
	client, url := with.sqs(d), aws.String(d.Id())
	found, err := client.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{
		QueueUrl: url, AttributeNames: []sqstypes.QueueAttributeName{"All"},
	})
	if err != nil {
		return false, err
	}
	tags, err := client.ListQueueTags(ctx, &sqs.ListQueueTagsInput{QueueUrl: url})
	if err != nil {
		return false, err
	}
	name := d.Id()[strings.LastIndex(d.Id(), "/")+1:]
	failed := []error{
		d.Set("arn", found.Attributes["QueueArn"]),
		d.Set("kms_master_key_id", found.Attributes["KmsMasterKeyId"]),
		d.Set("name", name),
		d.Set("name_prefix", prefixOf(name)),
		d.Set("sqs_managed_sse_enabled", found.Attributes["SqsManagedSseEnabled"] == "true"),
		d.Set("url", d.Id()),
		setTags(d, with, tags.Tags),
	}
	period := 300
	if text, given := found.Attributes["KmsDataKeyReusePeriodSeconds"]; given {
		period, err = strconv.Atoi(text)
		failed = append(failed, err)
	}
	failed = append(failed, d.Set("kms_data_key_reuse_period_seconds", period))
	for ours, theirs := range queueNumbers {
		if text, given := found.Attributes[theirs]; given {
			value, err := strconv.Atoi(text)
			failed = append(failed, err, d.Set(ours, value))
		}
	}
	return true, errors.Join(failed...)
}

func updateQueue(ctx context.Context, d *schema.ResourceData, with *clients) error {
	client, url := with.sqs(d), aws.String(d.Id())
	if d.HasChangesExcept("tags", "tags_all") {
		_, err := client.SetQueueAttributes(ctx, &sqs.SetQueueAttributesInput{
			QueueUrl: url, Attributes: queueAttributes(d),
		})
		if err != nil {
			return err
		}
	}
	if !d.HasChange("tags_all") {
		return nil
	}
	gone, put := changedTags(d)
	if len(gone) > 0 {
		if _, err := client.UntagQueue(ctx, &sqs.UntagQueueInput{QueueUrl: url, TagKeys: gone}); err != nil {
			return err
		}
	}
	if len(put) == 0 {
		return nil
	}
	_, err := client.TagQueue(ctx, &sqs.TagQueueInput{QueueUrl: url, Tags: put})
	return err
}

func queuePolicy() *schema.Resource {
	own := map[string]*schema.Schema{
		"policy":    policyDocument(validation.StringIsJSON),
		"queue_url": {Type: schema.TypeString, Required: true, ForceNew: true},
	}
	put := func(ctx context.Context, d *schema.ResourceData, with *clients) error {
		d.SetId(d.Get("queue_url").(string))
		_, err := with.sqs(d).SetQueueAttributes(ctx, &sqs.SetQueueAttributesInput{
			QueueUrl: aws.String(d.Id()), Attributes: map[string]string{"Policy": d.Get("policy").(string)},
		})
		return err
	}
	return managed(own, true, false, operations{
		create: put,
		update: put,
		read: func(ctx context.Context, d *schema.ResourceData, with *clients) (bool, error) {
			found, err := with.sqs(d).GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{
				QueueUrl: aws.String(d.Id()), AttributeNames: []sqstypes.QueueAttributeName{"Policy"},
			})
			if err != nil || found.Attributes["Policy"] == "" {
				return false, err
			}
			return true, errors.Join(
				d.Set("policy", normalized(found.Attributes["Policy"])), d.Set("queue_url", d.Id()),
			)
		},
		delete: func(ctx context.Context, d *schema.ResourceData, with *clients) error {
			_, err := with.sqs(d).SetQueueAttributes(ctx, &sqs.SetQueueAttributesInput{
				QueueUrl: aws.String(d.Id()), Attributes: map[string]string{"Policy": ""},
			})
			return err
		},
	})
}

const eventNames = `^[0-9A-Za-z_.-]+$`

func eventRule() *schema.Resource {
	own := map[string]*schema.Schema{
		"arn":         computed(schema.TypeString),
		"description": {Type: schema.TypeString, Optional: true, ValidateFunc: validation.StringLenBetween(0, 512)},
		"event_bus_name": {
			Type: schema.TypeString, Optional: true, ForceNew: true, Default: "default",
		},
		"event_pattern": {
			Type: schema.TypeString, Optional: true, ValidateFunc: validPattern, StateFunc: normalized,
			AtLeastOneOf: []string{"schedule_expression", "event_pattern"},
		},
		"force_destroy": {Type: schema.TypeBool, Optional: true, Default: false},
		"schedule_expression": {
			Type: schema.TypeString, Optional: true, ValidateFunc: validation.StringLenBetween(0, 256),
			AtLeastOneOf: []string{"schedule_expression", "event_pattern"},
		},
	}
	maps.Copy(own, named(64, eventNames))
	own["name_prefix"].ValidateFunc = own["name"].ValidateFunc
	put := func(ctx context.Context, d *schema.ResourceData, with *clients, name string, tags []eventtypes.Tag) error {
		_, err := with.events(d).PutRule(ctx, &eventbridge.PutRuleInput{
			Name:               aws.String(name),
			Description:        optional(d, "description"),
			EventBusName:       optional(d, "event_bus_name"),
			EventPattern:       optional(d, "event_pattern"),
			ScheduleExpression: optional(d, "schedule_expression"),
			Tags:               tags,
		})
		return err
	}
	return managed(own, true, true, operations{
		create: func(ctx context.Context, d *schema.ResourceData, with *clients) error {
			name := nameOf(d)
			d.SetId(name)
			return put(ctx, d, with, name, eventTags(allTags(d)))
		},
		read: func(ctx context.Context, d *schema.ResourceData, with *clients) (bool, error) {
			client := with.events(d)
			found, err := client.DescribeRule(ctx, &eventbridge.DescribeRuleInput{Name: aws.String(d.Id())})
			if err != nil {
				return false, err
			}
			tags, err := client.ListTagsForResource(ctx, &eventbridge.ListTagsForResourceInput{ResourceARN: found.Arn})
			if err != nil {
				return false, err
			}
			has := map[string]string{}
			for _, tag := range tags.Tags {
				has[aws.ToString(tag.Key)] = aws.ToString(tag.Value)
			}
			return true, errors.Join(
				d.Set("arn", found.Arn),
				d.Set("description", found.Description),
				d.Set("event_pattern", normalized(aws.ToString(found.EventPattern))),
				d.Set("name", found.Name),
				d.Set("name_prefix", prefixOf(aws.ToString(found.Name))),
				d.Set("schedule_expression", found.ScheduleExpression),
				setTags(d, with, has),
			)
		},
		update: func(ctx context.Context, d *schema.ResourceData, with *clients) error {
			if d.HasChangesExcept("tags", "tags_all", "force_destroy") {
				if err := put(ctx, d, with, d.Id(), nil); err != nil {
					return err
				}
			}
			return tagRule(ctx, d, with)
		},
		delete: func(ctx context.Context, d *schema.ResourceData, with *clients) error {
			_, err := with.events(d).DeleteRule(ctx, &eventbridge.DeleteRuleInput{
				Name: aws.String(d.Id()), Force: d.Get("force_destroy").(bool),
			})
			return err
		},
	})
}

func tagRule(ctx context.Context, d *schema.ResourceData, with *clients) error {
	if !d.HasChange("tags_all") {
		return nil
	}
	gone, put := changedTags(d)
	client, arn := with.events(d), aws.String(d.Get("arn").(string))
	if len(gone) > 0 {
		untag := &eventbridge.UntagResourceInput{ResourceARN: arn, TagKeys: gone}
		if _, err := client.UntagResource(ctx, untag); err != nil {
			return err
		}
	}
	if len(put) == 0 {
		return nil
	}
	_, err := client.TagResource(ctx, &eventbridge.TagResourceInput{ResourceARN: arn, Tags: eventTags(put)})
	return err
}

func eventTags(tags map[string]string) []eventtypes.Tag {
	var found []eventtypes.Tag
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		found = append(found, eventtypes.Tag{Key: aws.String(key), Value: aws.String(tags[key])})
	}
	return found
}

func validPattern(given any, key string) ([]string, []error) {
	var pattern any
	if err := json.Unmarshal([]byte(given.(string)), &pattern); err != nil {
		return nil, []error{fmt.Errorf("%q contains an invalid JSON: %w", key, err)}
	}
	if text := normalized(given); len(text) > 4096 {
		return nil, []error{fmt.Errorf("%q cannot be longer than 4096 characters: %q", key, text)}
	}
	return nil, nil
}

func eventTarget() *schema.Resource {
	named := func() schema.SchemaValidateFunc {
		return validation.All(
			validation.StringLenBetween(1, 64),
			validation.StringMatch(regexp.MustCompile(eventNames), "has characters that such a name may not have"),
		)
	}
	own := map[string]*schema.Schema{
		"arn":            {Type: schema.TypeString, Required: true, ValidateFunc: validARN},
		"event_bus_name": {Type: schema.TypeString, Optional: true, ForceNew: true, Default: "default"},
		"force_destroy":  {Type: schema.TypeBool, Optional: true, Default: false},
		"rule":           {Type: schema.TypeString, Required: true, ForceNew: true, ValidateFunc: named()},
		"target_id": {
			Type: schema.TypeString, Optional: true, Computed: true, ForceNew: true, ValidateFunc: named(),
		},
	}
	put := func(ctx context.Context, d *schema.ResourceData, with *clients) error {
		rule, target := d.Get("rule").(string), d.Get("target_id").(string)
		d.SetId(rule + "-" + target)
		answer, err := with.events(d).PutTargets(ctx, &eventbridge.PutTargetsInput{
			Rule:    aws.String(rule),
			Targets: []eventtypes.Target{{Id: aws.String(target), Arn: aws.String(d.Get("arn").(string))}},
		})
		if err == nil && answer.FailedEntryCount > 0 {
			err = fmt.Errorf("target %s: %s", target, aws.ToString(answer.FailedEntries[0].ErrorMessage))
		}
		return err
	}
	return managed(own, true, false, operations{
		create: put,
		update: put,
		read: func(ctx context.Context, d *schema.ResourceData, with *clients) (bool, error) {
			found, err := with.events(d).ListTargetsByRule(ctx, &eventbridge.ListTargetsByRuleInput{
				Rule: aws.String(d.Get("rule").(string)),
			})
			if err != nil {
				return false, err
			}
			for _, target := range found.Targets {
				if aws.ToString(target.Id) == d.Get("target_id").(string) {
					return true, d.Set("arn", target.Arn)
				}
			}
			return false, nil
		},
		delete: func(ctx context.Context, d *schema.ResourceData, with *clients) error {
			_, err := with.events(d).RemoveTargets(ctx, &eventbridge.RemoveTargetsInput{
				Rule: aws.String(d.Get("rule").(string)), Ids: []string{d.Get("target_id").(string)},
			})
			return err
		},
	})
}
