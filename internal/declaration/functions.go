package declaration

import (
	"crypto/md5"  //nolint:gosec // a name's digest as Terraform gives it, not a secret
	"crypto/sha1" //nolint:gosec // as md5
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"math"
	"net/url"
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2/ext/tryfunc"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
)

// functions are Terraform's pure functions by name, with Terraform's meaning.
var functions = map[string]function.Function{
	"abs": stdlib.AbsoluteFunc, "alltrue": quantifier(false), "anytrue": quantifier(true),
	"base64decode": textFunction(func(s string) (string, error) {
		b, err := base64.StdEncoding.DecodeString(s)
		return string(b), err
	}),
	"base64encode": textFunction(func(s string) (string, error) { return base64.StdEncoding.EncodeToString([]byte(s)), nil }),
	"can":          tryfunc.CanFunc, "basename": pathFunction(path.Base), "dirname": pathFunction(path.Dir), "csvdecode": stdlib.CSVDecodeFunc,
	"urlencode": textFunction(func(s string) (string, error) { return url.QueryEscape(s), nil }),
	"sensitive": markFunc(true), "nonsensitive": markFunc(false), "index": indexFunc, "ceil": stdlib.CeilFunc, "chomp": stdlib.ChompFunc, "chunklist": stdlib.ChunklistFunc,
	"coalesce": coalesceFunc, "coalescelist": stdlib.CoalesceListFunc, "compact": stdlib.CompactFunc, "concat": stdlib.ConcatFunc,
	"contains": stdlib.ContainsFunc, "distinct": stdlib.DistinctFunc, "element": stdlib.ElementFunc,
	"endswith": textTest(strings.HasSuffix), "flatten": stdlib.FlattenFunc, "floor": stdlib.FloorFunc,
	"format": narrow(stdlib.FormatFunc), "formatdate": stdlib.FormatDateFunc, "formatlist": narrow(stdlib.FormatListFunc),
	"indent": narrow(stdlib.IndentFunc), "join": stdlib.JoinFunc, "jsondecode": stdlib.JSONDecodeFunc, "jsonencode": stdlib.JSONEncodeFunc,
	"keys": stdlib.KeysFunc, "length": lengthFunc, "log": stdlib.LogFunc, "lookup": lookupFunc, "lower": stdlib.LowerFunc,
	"max":   stdlib.MaxFunc,
	"md5":   digest(md5.New),
	"merge": stdlib.MergeFunc, "min": stdlib.MinFunc, "one": oneFunc, "parseint": stdlib.ParseIntFunc, "pow": stdlib.PowFunc,
	"range": stdlib.RangeFunc, "regex": stdlib.RegexFunc, "regexall": stdlib.RegexAllFunc, "replace": replaceFunc,
	"reverse": stdlib.ReverseListFunc, "setintersection": stdlib.SetIntersectionFunc, "setproduct": stdlib.SetProductFunc,
	"setsubtract": stdlib.SetSubtractFunc, "setunion": stdlib.SetUnionFunc,
	"sha1": digest(sha1.New), "sha256": digest(sha256.New), "sha512": digest(sha512.New),
	"signum": stdlib.SignumFunc, "slice": stdlib.SliceFunc, "sort": stdlib.SortFunc, "split": stdlib.SplitFunc,
	"startswith": textTest(strings.HasPrefix), "strcontains": textTest(strings.Contains), "strrev": stdlib.ReverseFunc,
	"substr": stdlib.SubstrFunc, "sum": sumFunc, "timeadd": stdlib.TimeAddFunc, "title": stdlib.TitleFunc,
	"tobool": stdlib.MakeToFunc(cty.Bool), "tolist": stdlib.MakeToFunc(cty.List(cty.DynamicPseudoType)),
	"tomap": stdlib.MakeToFunc(cty.Map(cty.DynamicPseudoType)), "tonumber": stdlib.MakeToFunc(cty.Number),
	"toset": stdlib.MakeToFunc(cty.Set(cty.DynamicPseudoType)), "tostring": stdlib.MakeToFunc(cty.String),
	"trim": stdlib.TrimFunc, "trimprefix": stdlib.TrimPrefixFunc, "trimspace": stdlib.TrimSpaceFunc, "trimsuffix": stdlib.TrimSuffixFunc,
	"try": tryfunc.TryFunc, "upper": stdlib.UpperFunc, "values": stdlib.ValuesFunc, "zipmap": stdlib.ZipmapFunc,
}

// onlyTerraform are functions that look at the world, at state or at files, or that
// give something else each time, and a few that no rollout needs.
var onlyTerraform = []string{
	"abspath", "base64gzip", "base64sha256", "base64sha512", "bcrypt", "cidrhost", "cidrnetmask", "cidrsubnet", "cidrsubnets", "ephemeralasnull",
	"file", "filebase64", "filebase64sha256", "filebase64sha512", "fileexists", "filemd5", "fileset", "filesha1", "filesha256", "filesha512",
	"issensitive", "matchkeys", "pathexpand", "plantimestamp", "rsadecrypt", "templatefile", "templatestring", "textdecodebase64",
	"textencodebase64", "timecmp", "timestamp", "transpose", "type", "uuid", "uuidv5", "yamldecode", "yamlencode",
}

func text(name string) function.Parameter { return function.Parameter{Name: name, Type: cty.String} }

func textFunction(f func(string) (string, error)) function.Function {
	return function.New(&function.Spec{Params: []function.Parameter{text("str")}, Type: function.StaticReturnType(cty.String),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			s, err := f(args[0].AsString())
			return cty.StringVal(s), err
		}})
}

func digest(of func() hash.Hash) function.Function {
	return textFunction(func(s string) (string, error) {
		h := of()
		h.Write([]byte(s))
		return hex.EncodeToString(h.Sum(nil)), nil
	})
}

func pathFunction(f func(string) string) function.Function {
	return textFunction(func(s string) (string, error) { return f(s), nil })
}

// markFunc is sensitive, or nonsensitive.
func markFunc(hide bool) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "value", Type: cty.DynamicPseudoType, AllowUnknown: true, AllowNull: true, AllowMarked: true, AllowDynamicType: true}},
		Type:   func(args []cty.Value) (cty.Type, error) { return args[0].Type(), nil },
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			v, marks := args[0].Unmark()
			delete(marks, secret{})
			if hide {
				return v.WithMarks(marks).Mark(secret{}), nil
			}
			return v.WithMarks(marks), nil
		}})
}

// indexFunc is the place of a value in a list.
var indexFunc = function.New(&function.Spec{
	Params: []function.Parameter{{Name: "list", Type: cty.DynamicPseudoType}, {Name: "value", Type: cty.DynamicPseudoType}},
	Type:   function.StaticReturnType(cty.Number),
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		if t := args[0].Type(); !t.IsTupleType() && !t.IsListType() {
			return cty.NilVal, errors.New("a list is wanted")
		}
		for i, v := range args[0].AsValueSlice() {
			same, err := stdlib.Equal(v, args[1])
			if err != nil {
				return cty.NilVal, err
			}
			if !same.IsKnown() {
				return cty.UnknownVal(cty.Number), nil
			}
			if same.True() {
				return cty.NumberIntVal(int64(i)), nil
			}
		}
		return cty.NilVal, errors.New("the list does not have it")
	},
})

func textTest(f func(s, part string) bool) function.Function {
	return function.New(&function.Spec{Params: []function.Parameter{text("str"), text("part")}, Type: function.StaticReturnType(cty.Bool),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			return cty.BoolVal(f(args[0].AsString(), args[1].AsString())), nil
		}})
}

// quantifier is alltrue (decided by a false) and anytrue (decided by a true).
func quantifier(decides bool) function.Function {
	return function.New(&function.Spec{Params: []function.Parameter{{Name: "list", Type: cty.List(cty.Bool)}}, Type: function.StaticReturnType(cty.Bool),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			unknown := false
			for _, v := range args[0].AsValueSlice() {
				switch {
				case !v.IsKnown():
					unknown = true
				case v.IsNull() && !decides:
					return cty.False, nil
				case !v.IsNull() && v.True() == decides:
					return cty.BoolVal(decides), nil
				}
			}
			if unknown {
				return cty.UnknownVal(cty.Bool), nil
			}
			return cty.BoolVal(!decides), nil
		}})
}

// lengthFunc takes texts too, unlike the library's.
var lengthFunc = function.New(&function.Spec{
	Params: []function.Parameter{{Name: "value", Type: cty.DynamicPseudoType, AllowDynamicType: true, AllowUnknown: true}},
	Type:   function.StaticReturnType(cty.Number),
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		v := args[0]
		switch t := v.Type(); {
		case t == cty.DynamicPseudoType, t == cty.String && !v.IsKnown():
			return cty.UnknownVal(cty.Number), nil
		case t == cty.String:
			return stdlib.Strlen(v)
		case t.IsTupleType():
			return cty.NumberIntVal(int64(t.Length())), nil
		case t.IsObjectType():
			return cty.NumberIntVal(int64(len(t.AttributeTypes()))), nil
		case t.IsCollectionType():
			return v.Length(), nil
		}
		return cty.NilVal, errors.New("a list, a map or a string is wanted")
	},
})

// coalesceFunc skips empty texts too, as Terraform's does.
var coalesceFunc = function.New(&function.Spec{
	VarParam: &function.Parameter{Name: "vals", Type: cty.DynamicPseudoType, AllowUnknown: true, AllowDynamicType: true, AllowNull: true},
	Type: func(args []cty.Value) (cty.Type, error) {
		types := make([]cty.Type, 0, len(args))
		for _, v := range args {
			types = append(types, v.Type())
		}
		t, _ := convert.UnifyUnsafe(types)
		if t == cty.NilType {
			return cty.NilType, errors.New("all arguments must have one type")
		}
		return t, nil
	},
	Impl: func(args []cty.Value, t cty.Type) (cty.Value, error) {
		for _, v := range args {
			c, err := convert.Convert(v, t)
			switch {
			case err != nil:
				return cty.NilVal, err
			case !c.IsKnown():
				return cty.UnknownVal(t), nil
			case c.IsNull(), t == cty.String && c.AsString() == "":
				continue
			}
			return c, nil
		}
		return cty.NilVal, errors.New("no argument is neither null nor empty")
	},
})

// lookupFunc may go without a default, unlike the library's.
var lookupFunc = function.New(&function.Spec{
	Params:   []function.Parameter{{Name: "map", Type: cty.DynamicPseudoType}, text("key")},
	VarParam: &function.Parameter{Name: "default", Type: cty.DynamicPseudoType, AllowNull: true, AllowUnknown: true, AllowDynamicType: true},
	Type: func(args []cty.Value) (cty.Type, error) {
		v, err := look(args)
		if err != nil {
			return cty.NilType, err
		}
		return v.Type(), nil
	},
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) { return look(args) },
})

func look(args []cty.Value) (cty.Value, error) {
	m, key := args[0], args[1]
	if t := m.Type(); !t.IsObjectType() && !t.IsMapType() {
		return cty.NilVal, errors.New("a map is wanted")
	}
	if !m.IsKnown() || !key.IsKnown() {
		return cty.DynamicVal, nil
	}
	if len(args) > 3 {
		return cty.NilVal, errors.New("there is one default at most")
	}
	for it := m.ElementIterator(); it.Next(); {
		if k, v := it.Element(); k.AsString() == key.AsString() {
			return v, nil
		}
	}
	if len(args) == 2 {
		return cty.NilVal, fmt.Errorf("no key %q, and no default", key.AsString())
	}
	if m.Type().IsMapType() {
		return convert.Convert(args[2], m.Type().ElementType())
	}
	return args[2], nil
}

// oneFunc is the only element of a list, or null.
var oneFunc = function.New(&function.Spec{
	Params: []function.Parameter{{Name: "list", Type: cty.DynamicPseudoType}},
	Type: func(args []cty.Value) (cty.Type, error) {
		v, err := only(args[0])
		if err != nil {
			return cty.NilType, err
		}
		return v.Type(), nil
	},
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) { return only(args[0]) },
})

func only(v cty.Value) (cty.Value, error) {
	if t := v.Type(); !t.IsTupleType() && !t.IsListType() && !t.IsSetType() {
		return cty.NilVal, errors.New("a list is wanted")
	}
	if !v.IsKnown() {
		return cty.DynamicVal, nil
	}
	switch v.LengthInt() {
	case 0:
		return cty.NullVal(cty.DynamicPseudoType), nil
	case 1:
		return v.AsValueSlice()[0], nil
	}
	return cty.NilVal, errors.New("there is more than one element")
}

var sumFunc = function.New(&function.Spec{
	Params: []function.Parameter{{Name: "list", Type: cty.List(cty.Number)}},
	Type:   function.StaticReturnType(cty.Number),
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		out := cty.Zero
		for _, v := range args[0].AsValueSlice() {
			if v.IsNull() {
				return cty.NilVal, errors.New("null cannot be added")
			}
			out = out.Add(v)
		}
		return out, nil
	},
})

// replaceFunc takes a pattern between slashes, as Terraform's does.
var replaceFunc = function.New(&function.Spec{
	Params: []function.Parameter{text("str"), text("substr"), text("replace")}, Type: function.StaticReturnType(cty.String),
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		s, old, replacement := args[0].AsString(), args[1].AsString(), args[2].AsString()
		if len(old) > 1 && strings.HasPrefix(old, "/") && strings.HasSuffix(old, "/") {
			pattern, err := regexp.Compile(old[1 : len(old)-1])
			if err != nil {
				return cty.NilVal, err
			}
			return cty.StringVal(pattern.ReplaceAllString(s, replacement)), nil
		}
		return cty.StringVal(strings.ReplaceAll(s, old, replacement)), nil
	},
})

// narrow refuses widths and indents that would fill memory.
func narrow(f function.Function) function.Function {
	return function.New(&function.Spec{Params: f.Params(), VarParam: f.VarParam(), Type: f.ReturnTypeForValues,
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			first, _ := args[0].Unmark()
			switch {
			case !first.IsKnown() || first.IsNull():
			case first.Type() == cty.Number && first.GreaterThan(cty.NumberIntVal(widest)).True(),
				first.Type() == cty.String && widestVerb(first.AsString()) > widest:
				return cty.NilVal, fmt.Errorf("a width or indent of more than %d", widest)
			}
			return f.Call(args)
		}})
}

// widestVerb is the largest number within the verbs of a format.
func widestVerb(s string) int {
	most := 0
	for {
		_, rest, found := strings.Cut(s, "%")
		if !found {
			return most
		}
		verb := rest[:len(rest)-len(strings.TrimLeft(rest, "-+# 0123456789.[]*"))]
		for _, digits := range strings.FieldsFunc(verb, func(r rune) bool { return r < '0' || r > '9' }) {
			n, err := strconv.Atoi(digits)
			if err != nil {
				n = math.MaxInt
			}
			most = max(most, n)
		}
		s = rest
	}
}
