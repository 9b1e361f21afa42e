package provider

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/attr/xattr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
)

// textType is a string that can be written in more than one way: "600s" and "10m",
// "PERCENTILE" and "METRIC_STAT_TYPE_PERCENTILE". Texts with one meaning are
// semantically equal, so that neither spelling ever shows as a change.
type textType struct {
	basetypes.StringType
	kind textKind
}

// textKind is what a textType holds: a duration, or an enum with this prefix.
type textKind string

const kindDuration textKind = "duration"

var (
	durationType = textType{kind: kindDuration}

	_ basetypes.StringTypable                    = textType{}
	_ basetypes.StringValuableWithSemanticEquals = text{}
	_ xattr.ValidateableAttribute                = text{}
)

func enumType(prefix string) textType { return textType{kind: textKind(prefix)} }

// Equal reports whether two types are the same kind of text.
func (t textType) Equal(o attr.Type) bool {
	other, ok := o.(textType)
	return ok && t.kind == other.kind
}

// String names the type in messages.
func (t textType) String() string { return "text(" + string(t.kind) + ")" }

// ValueType gives an empty value of the type.
func (t textType) ValueType(context.Context) attr.Value { return text{kind: t.kind} }

// ValueFromString wraps a string.
func (t textType) ValueFromString(_ context.Context, in basetypes.StringValue) (basetypes.StringValuable, diag.Diagnostics) {
	return text{StringValue: in, kind: t.kind}, nil
}

// ValueFromTerraform converts from the protocol.
func (t textType) ValueFromTerraform(ctx context.Context, in tftypes.Value) (attr.Value, error) {
	v, err := t.StringType.ValueFromTerraform(ctx, in)
	if err != nil {
		return nil, err
	}
	s, ok := v.(basetypes.StringValue)
	if !ok {
		return nil, fmt.Errorf("unexpected %T for a string", v)
	}
	return text{StringValue: s, kind: t.kind}, nil
}

// text is a value of textType.
type text struct {
	basetypes.StringValue
	kind textKind
}

func newText(t textType, s string) text { return text{StringValue: types.StringValue(s), kind: t.kind} }
func nullText(t textType) text          { return text{StringValue: types.StringNull(), kind: t.kind} }

// Type gives the value's type.
func (v text) Type(context.Context) attr.Type { return textType{kind: v.kind} }

// Equal compares letter by letter; meaning is StringSemanticEquals.
func (v text) Equal(o attr.Value) bool {
	other, ok := o.(text)
	return ok && v.kind == other.kind && v.StringValue.Equal(other.StringValue)
}

// StringSemanticEquals compares meanings.
func (v text) StringSemanticEquals(_ context.Context, o basetypes.StringValuable) (bool, diag.Diagnostics) {
	other, ok := o.(text)
	if !ok {
		return false, nil
	}
	return v.meaning() == other.meaning(), nil
}

// meaning is one spelling for all texts that mean the same.
func (v text) meaning() string {
	s := v.ValueString()
	if v.kind != kindDuration {
		return fullEnum(string(v.kind), s)
	}
	if d, err := parseDuration(s); err == nil {
		return d.String()
	}
	return s
}

// ValidateAttribute refuses a duration that is none. Enums are checked with the
// spec that they stand in, where the message can name the choices.
func (v text) ValidateAttribute(_ context.Context, req xattr.ValidateAttributeRequest, resp *xattr.ValidateAttributeResponse) {
	if v.kind != kindDuration || v.IsNull() || v.IsUnknown() {
		return
	}
	if _, err := parseDuration(v.ValueString()); err != nil {
		resp.Diagnostics.AddAttributeError(topLevel(req.Path), "Not a duration at "+req.Path.String(), err.Error())
	}
}

// parseDuration reads "600s", "10m", "1h30m". The wire's own form is read as the
// wire does, which rounds to a nanosecond where Go's parser cuts.
func parseDuration(s string) (time.Duration, error) {
	s = strings.TrimSpace(s)
	if d, err := api.ParseDuration(s); err == nil {
		return time.Duration(d), nil
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		return 0, fmt.Errorf("%q is not a duration. Write a number with a unit, such as \"600s\", \"10m\" or \"1h30m\"", s)
	}
	return d, nil
}

// wireDuration is a duration text for the API; what does not parse is refused
// elsewhere and left out here.
func wireDuration(v text) *api.Duration {
	if v.IsNull() || v.IsUnknown() {
		return nil
	}
	d, err := parseDuration(v.ValueString())
	if err != nil {
		return nil
	}
	out := api.Duration(d)
	return &out
}

// fullEnum gives an enum its prefix if it lacks it.
func fullEnum(prefix, s string) string {
	if s == "" || strings.HasPrefix(s, prefix) {
		return s
	}
	return prefix + s
}

// shortEnum cuts the prefix off.
func shortEnum(prefix, s string) string { return strings.TrimPrefix(s, prefix) }
