package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Duration travels as a string of seconds with an "s" and up to nine fractional
// digits, for example "390s" or "0.5s". Forms such as "10m" are refused on the
// wire; doors that take them convert first.
type Duration time.Duration

// ParseDuration reads the wire form.
func ParseDuration(s string) (Duration, error) {
	digits, ok := strings.CutSuffix(s, "s")
	if !ok || digits == "" || strings.Trim(digits, "-0123456789.") != "" {
		return 0, fmt.Errorf("%q is not a duration of the form \"600s\": seconds with an \"s\"", s)
	}
	secs, err := strconv.ParseFloat(digits, 64)
	if err != nil || math.Abs(secs) > 315_576_000_000 {
		return 0, fmt.Errorf("%q is not a duration of the form \"600s\": seconds with an \"s\"", s)
	}
	d := secs * float64(time.Second)
	if math.Abs(d) > math.MaxInt64/2 {
		return 0, fmt.Errorf("%q is longer than a duration can be", s)
	}
	return Duration(math.Round(d)), nil
}

// String returns the wire form.
func (d Duration) String() string {
	return strconv.FormatFloat(time.Duration(d).Seconds(), 'f', -1, 64) + "s"
}

// MarshalJSON writes the wire form.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(d.String()) }

// UnmarshalJSON reads the wire form.
func (d *Duration) UnmarshalJSON(b []byte) error {
	if bytes.Equal(b, []byte("null")) {
		return nil
	}
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return fmt.Errorf("%s is not a duration: a string such as \"600s\" is wanted", b)
	}
	v, err := ParseDuration(s)
	if err != nil {
		return err
	}
	*d = v
	return nil
}

// Time is an instant on the wire: RFC 3339 in UTC.
type Time struct{ time.Time }

// At makes an instant for the wire; the zero instant is left out by pointers.
func At(t time.Time) Time { return Time{t.UTC()} }

// AtOrNil is At, with nil for the zero instant.
func AtOrNil(t time.Time) *Time {
	if t.IsZero() {
		return nil
	}
	v := At(t)
	return &v
}

// MarshalJSON writes UTC with as many fractional digits as needed, at most micros.
func (t Time) MarshalJSON() ([]byte, error) {
	return json.Marshal(t.UTC().Truncate(time.Microsecond).Format(time.RFC3339Nano))
}
