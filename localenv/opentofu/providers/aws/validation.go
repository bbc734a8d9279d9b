package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws/arn"
	awspolicy "github.com/hashicorp/awspolicyequivalence"
	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/id"
	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/schema"
	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/structure"
	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/validation"
)

var (
	accountPattern   = regexp.MustCompile(`^(aws|aws-managed|third-party|aws-marketplace|\d{12}|cw.{10})$`)
	partitionPattern = regexp.MustCompile(`^aws(-[a-z]+)*$`)
	uniqueEnding     = regexp.MustCompile(`^(.*)[0-9a-f]{26}$`)
)

// named are `name` and `name_prefix`, of which one may be given; neither gives a name of the provider's own.
func named(longest int, characters string) map[string]*schema.Schema {
	attribute := func(other string, limit int) *schema.Schema {
		return &schema.Schema{
			Type: schema.TypeString, Optional: true, Computed: true, ForceNew: true,
			ConflictsWith: []string{other},
			ValidateFunc: validation.All(
				validation.StringLenBetween(1, limit),
				validation.StringMatch(regexp.MustCompile(characters), "has characters that such a name may not have"),
			),
		}
	}
	return map[string]*schema.Schema{
		"name":        attribute("name_prefix", longest),
		"name_prefix": attribute("name", longest-id.UniqueIDSuffixLength),
	}
}

const iamCharacters = `^[\w+=,.@-]*$`

func nameOf(d interface{ Get(string) any }) string {
	if name := d.Get("name").(string); name != "" {
		return name
	}
	if prefix := d.Get("name_prefix").(string); prefix != "" {
		return id.PrefixedUniqueId(prefix)
	}
	return id.UniqueId()
}

func prefixOf(name string) string {
	if found := uniqueEnding.FindStringSubmatch(name); found != nil {
		return found[1]
	}
	return ""
}

func validARN(given any, key string) ([]string, []error) {
	text, _ := given.(string)
	if text == "" {
		return nil, nil
	}
	parsed, err := arn.Parse(text)
	switch {
	case err != nil:
		return nil, []error{fmt.Errorf("%q (%s) is an invalid ARN: %w", key, text, err)}
	case !partitionPattern.MatchString(parsed.Partition):
		return nil, []error{fmt.Errorf("%q (%s) is an invalid ARN: invalid partition value", key, text)}
	case parsed.AccountID != "" && !accountPattern.MatchString(parsed.AccountID):
		return nil, []error{fmt.Errorf("%q (%s) is an invalid ARN: invalid account ID value", key, text)}
	case parsed.Resource == "":
		return nil, []error{fmt.Errorf("%q (%s) is an invalid ARN: missing resource value", key, text)}
	}
	return nil, nil
}

// validPolicy refuses what is no JSON object, as IAM does what has a byte before its brace.
func validPolicy(given any, key string) ([]string, []error) {
	text, _ := given.(string)
	if !strings.HasPrefix(text, "{") {
		return nil, []error{fmt.Errorf("%q contains an invalid JSON policy: it has to begin with {", key)}
	}
	var document map[string]any
	if err := json.Unmarshal([]byte(text), &document); err != nil {
		return nil, []error{fmt.Errorf("%q contains an invalid JSON policy: %w", key, err)}
	}
	return nil, nil
}

func policyDocument(validate schema.SchemaValidateFunc) *schema.Schema {
	return &schema.Schema{
		Type: schema.TypeString, Required: true, ValidateFunc: validate,
		DiffSuppressFunc:      sameDocuments,
		DiffSuppressOnRefresh: true,
		StateFunc:             normalized,
	}
}

func sameDocuments(_, before, after string, _ *schema.ResourceData) bool {
	same, err := awspolicy.PoliciesAreEquivalent(before, after)
	return err == nil && same
}

func normalized(given any) string {
	text, err := structure.NormalizeJsonString(given)
	if err != nil {
		return given.(string)
	}
	return text
}

func computed(kind schema.ValueType) *schema.Schema {
	return &schema.Schema{Type: kind, Computed: true}
}

func clusterName() *schema.Schema {
	return &schema.Schema{
		Type: schema.TypeString, Required: true, ForceNew: true,
		ValidateFunc: validation.All(
			validation.StringLenBetween(1, 100),
			validation.StringMatch(regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z_-]*$`), "is no name of a cluster"),
		),
	}
}
