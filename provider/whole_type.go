package provider

import (
	"context"
	"fmt"
	"math/big"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/attr/xattr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// wholeType is a whole number that a person writes. It takes any number, so that a
// fraction is refused with what to write instead and beside the other mistakes: the
// framework's integers fail to convert, which hides everything else.
type wholeType struct{ basetypes.NumberType }

var (
	wholeNumber = wholeType{}

	_ basetypes.NumberTypable     = wholeType{}
	_ basetypes.NumberValuable    = whole{}
	_ xattr.ValidateableAttribute = whole{}
)

// Equal reports whether two types are both whole numbers.
func (t wholeType) Equal(o attr.Type) bool {
	_, ok := o.(wholeType)
	return ok
}

// String names the type in messages.
func (t wholeType) String() string { return "whole number" }

// ValueType gives an empty value of the type.
func (t wholeType) ValueType(context.Context) attr.Value { return whole{} }

// ValueFromNumber wraps a number.
func (t wholeType) ValueFromNumber(_ context.Context, in basetypes.NumberValue) (basetypes.NumberValuable, diag.Diagnostics) {
	return whole{in}, nil
}

// ValueFromTerraform converts from the protocol.
func (t wholeType) ValueFromTerraform(ctx context.Context, in tftypes.Value) (attr.Value, error) {
	v, err := t.NumberType.ValueFromTerraform(ctx, in)
	if err != nil {
		return nil, err
	}
	n, ok := v.(basetypes.NumberValue)
	if !ok {
		return nil, fmt.Errorf("unexpected %T for a number", v)
	}
	return whole{n}, nil
}

// whole is a value of wholeType.
type whole struct{ basetypes.NumberValue }

func wholeOf(n int) whole { return whole{types.NumberValue(big.NewFloat(float64(n)))} }
func noWhole() whole      { return whole{types.NumberNull()} }

// wholeOrNull is null for nil.
func wholeOrNull(n *int) whole {
	if n == nil {
		return noWhole()
	}
	return wholeOf(*n)
}

// Type gives the value's type.
func (v whole) Type(context.Context) attr.Type { return wholeNumber }

// Equal compares numbers.
func (v whole) Equal(o attr.Value) bool {
	other, ok := o.(whole)
	return ok && v.NumberValue.Equal(other.NumberValue)
}

// int is the number; ok is false for null, unknown and what is not a whole number of
// a size that counts anything.
func (v whole) int() (n int, ok bool) {
	if v.IsNull() || v.IsUnknown() {
		return 0, false
	}
	wide, accuracy := v.ValueBigFloat().Int64()
	if accuracy != big.Exact || wide > 1<<31-1 || wide < -1<<31 {
		return 0, false
	}
	return int(wide), true
}

// orZero is int with 0 for what is none.
func (v whole) orZero() int {
	n, _ := v.int()
	return n
}

// isWrong reports whether a number is given that is not whole.
func (v whole) isWrong() bool {
	_, ok := v.int()
	return !ok && !v.IsNull() && !v.IsUnknown()
}

// ValidateAttribute refuses a fraction, with the number that was probably meant.
func (v whole) ValidateAttribute(_ context.Context, req xattr.ValidateAttributeRequest, resp *xattr.ValidateAttributeResponse) {
	if !v.isWrong() {
		return
	}
	given := v.ValueBigFloat()
	detail := fmt.Sprintf("%s is not a whole number.", given.Text('g', 10))
	switch below, accuracy := given.Int64(); {
	case accuracy == big.Exact || given.IsInf() || below > 1<<31-1 || below < -1<<31:
		detail = fmt.Sprintf("%s is out of range.", given.Text('g', 20))
	case below == 0 && given.Sign() > 0 && !strings.Contains(req.Path.String(), "replicas"):
		hundredfold, _ := new(big.Float).Mul(given, big.NewFloat(100)).Float64()
		detail += fmt.Sprintf(" Write %.0f, not %s.", hundredfold, given.Text('g', 10))
	default:
		detail += fmt.Sprintf(" Write %d or %d.", below, below+1)
	}
	resp.Diagnostics.AddAttributeError(topLevel(req.Path), "Not a whole number at "+req.Path.String(), detail)
}
